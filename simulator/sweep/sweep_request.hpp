// Request of a sweep, as text that stays with its results, so that it can go on without its command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/sweep/grid.hpp"
#include "simulator/sweep/shard.hpp"
#include "simulator/sweep/sweep.hpp"

namespace tidepool {

struct SweepOrder {
  std::vector<std::string> traces;  ///< paths, as given
  std::vector<std::string> hashes;  ///< of their content; empty: not loaded yet
  GridText grid;
  Shard shard;
  std::string find;    ///< see find.hpp; "": every run of the grid
  std::string folder;  ///< from which paths are meant
};

/// JSON, and back. @throws InputError  if a file says something else
std::string to_json(const SweepOrder& order);
SweepOrder parse_order(const std::string& json);

/// Orders that are shards of one sweep, if all of them are here, become that sweep.
std::vector<SweepOrder> joined(std::vector<SweepOrder> orders);

/// The traces and their grids, each step once, however many files hold it; fills `order.hashes`, or compares with them.
/// @throws InputError  "r.tide: content 1b60...; the sweep was over e5f6...",  or as load_trace and Grid
std::vector<SweepPart> load_parts(SweepOrder& order);

}  // namespace tidepool
