// Sweep whose shards run on other machines, and whose results are collected here.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include "simulator/studies/launch/launcher.hpp"
#include "simulator/studies/sweep/sweep_request.hpp"

namespace tidepool {

struct FarmOrder {
  SweepOrder sweep;
  std::string program;  ///< the path of this program, on all machines
  std::string threads;  ///< for -j of each worker, as the shell of the worker reads it; "": all cores
  std::string results;  ///< the database's path, absolute
  int shards = 1;
};

struct FarmResult {
  std::size_t runs = 0;     ///< number of runs in the order
  std::size_t missing = 0;  ///< number of runs that are not done in the end
  std::vector<int> shards;  ///< shards of the missing runs
  std::string folder;       ///< folder of the shards and the output of their workers, if any run is missing
};

/// Submits the shards that lack runs, follows them, merges their results, and submits shards that still lack runs once
/// more. The shards' databases are in a folder "RESULTS.shards", from which an interrupted farm continues; it is
/// removed when no run is missing.
/// @param parts  the order as read by load_parts
/// @throws Disagreement, InputError, std::runtime_error  as merge and Launcher::run
FarmResult farm(const FarmOrder& order, std::span<const SweepPart> parts, Database& database, Launcher& launcher,
                const std::atomic<bool>& stop);

/// The command of the sweep as a line for a shell, without -o, -j and --shard.
std::string command_line(const std::string& program, const SweepOrder& order);

/// The default number of shards, 1 to 64. If there is more than one, each has about 50 runs or more.
int usual_shards(std::span<const SweepPart> parts);

}  // namespace tidepool
