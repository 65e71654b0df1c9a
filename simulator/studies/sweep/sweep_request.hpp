// Request of a sweep, stored as text with its results, so that the sweep can be resumed without its command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/studies/sweep/grid.hpp"
#include "simulator/studies/sweep/shard.hpp"
#include "simulator/studies/sweep/sweep.hpp"

namespace tidepool {

struct SweepOrder {
  std::vector<std::string> traces;         ///< paths, as the user wrote them
  std::vector<std::string> hashes;         ///< hashes of the traces' content; empty: not loaded yet
  std::vector<std::string> machines = {};  ///< hashes of the machines of `grid`; empty: not loaded yet
  std::vector<std::string> files = {};     ///< hashes of the content of the files that options of `grid` name
  GridText grid;
  Shard shard;
  std::string find;    ///< an objective, see least_capacity.hpp; "": every run of the grid
  std::string folder;  ///< the current folder when the sweep began, in which relative paths begin
};

/// Writes a request, whose traces are loaded (see load_parts()), as JSON, and reads it back.
/// @throws InputError  "not a sweep's request: ..."
std::string to_json(const SweepOrder& order);
SweepOrder parse_order(const std::string& json);

/// Replaces the requests of a sweep's shards by the request of the whole sweep, if all shards are among `orders`. Other
/// requests stay as they are. No two of `orders` may be equal. The shards of a sweep come one after the other.
std::vector<SweepOrder> joined(std::vector<SweepOrder> orders);

/// Loads the traces, from paths that begin in the current folder, and their grids. If several files contain the same
/// step, it is taken once. Fills the hashes of `order` if those of the traces are empty; otherwise compares the traces,
/// machines and files with them.
/// @throws InputError  "r.tide: content 1b60...; the sweep was over e5f6...", "machine mine: numbers 0d..; the sweep
///   was over 7a...", or as load_trace and Grid
std::vector<SweepPart> load_parts(SweepOrder& order);

}  // namespace tidepool
