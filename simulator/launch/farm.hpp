// A sweep whose shards are run elsewhere and collected here.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include "simulator/launch/launcher.hpp"
#include "simulator/sweep/sweep_request.hpp"

namespace tidepool {

struct FarmOrder {
  SweepOrder sweep;
  std::string program;  ///< the path of this program, on all machines
  std::string threads;  ///< for -j of each worker, as the shell of the worker reads it; "": all cores
  std::string results;  ///< the database's path, absolute
  int shards = 1;
};

struct FarmResult {
  std::size_t runs = 0;     ///< that were asked for
  std::size_t missing = 0;  ///< of them, not done after the second try
  std::vector<int> shards;  ///< that those belong to
  std::string folder;       ///< where the shards and what their workers said are, if any is missing
};

/// Submits the shards that lack runs, follows them, merges what they wrote, and submits those that still lack some once
/// more. The shards' databases are in a folder "RESULTS.shards", from which an interrupted farm goes on; it is removed
/// when nothing is missing.
/// @param parts  what load_parts made of the order
/// @throws Disagreement, InputError, std::runtime_error  as merge and Launcher::run
FarmResult farm(const FarmOrder& order, std::span<const SweepPart> parts, Database& database, Launcher& launcher,
                const std::atomic<bool>& stop);

/// The command of the sweep, a shell's line, without -o, -j and --shard.
std::string command_line(const std::string& program, const SweepOrder& order);

/// What is there to be done, by shards of at least some runs each: 1 to 64.
int usual_shards(std::span<const SweepPart> parts);

}  // namespace tidepool
