// Sweep: many runs on a few threads, stored in a database.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "simulator/sweep/database.hpp"
#include "simulator/sweep/grid.hpp"
#include "simulator/sweep/result_row.hpp"
#include "simulator/sweep/shard.hpp"

namespace tidepool {

/// A trace, which all threads share, and the grid of its runs.
struct SweepPart {
  NamedTrace trace;
  Grid grid;
};

struct SweepProgress {
  std::size_t runs = 0;       ///< of the grids, in this shard
  std::size_t present = 0;    ///< of `runs`: in the database before this sweep, or written by another sweep meanwhile
  std::size_t elsewhere = 0;  ///< of `present`: written by another sweep meanwhile
  std::size_t done = 0;       ///< of `runs`: done by this sweep and in the database
  std::size_t failed = 0;     ///< of `done`: outcome error
  std::string first_failure;
  std::size_t unsettled = 0;            ///< of `done`: no iteration began in the state of an earlier one
  std::int64_t actions = 0;             ///< of all runs in `done`
  double seconds = 0;                   ///< of wall time
  std::optional<double> seconds_to_go;  ///< see RemainingTime; none: not known yet
};

struct SweepOptions {
  int threads = 1;
  Shard shard = {};  ///< runs of other shards are left out
  /// Called before the first run, about five times a second and at the end, by the thread that called sweep().
  std::function<void(const SweepProgress&)> progress = {};
  /// If it becomes true, runs in progress are finished and written, and no other run begins.
  const std::atomic<bool>* stop = nullptr;
};

/// One run of a sweep.
struct SweepTask {
  std::uint32_t part = 0;
  std::size_t index = 0;  ///< in the part's grid
};

/// Does every run that the database does not have, or has as failed. Runs that another sweep into the same file is
/// doing are left to it and waited for: each run is claimed in the database, with a lock that ends with its process
/// (ClaimLock). The rows are the same for any number of threads and after any number of interruptions, but for the
/// columns of wall time. A run that fails becomes a row with outcome error and does not stop the sweep.
/// @throws Disagreement  if another worker wrote a run meanwhile, with another result
/// @throws std::runtime_error  if the database cannot be written
SweepProgress sweep(std::span<const SweepPart> parts, Database& database, const SweepOptions& options);

/// The same for given runs of any shard. Adds to all counts of `progress`, and to its seconds.
void sweep(std::span<const SweepPart> parts, std::span<const SweepTask> tasks, Database& database,
           const SweepOptions& options, SweepProgress& progress);

}  // namespace tidepool
