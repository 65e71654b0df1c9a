// Many runs on a few threads, into a database that keeps what was done.
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

/// A trace, which all threads share, and what to run it under.
struct SweepPart {
  NamedTrace trace;
  Grid grid;
};

struct SweepProgress {
  std::size_t runs = 0;       ///< that the grids ask for, of the shard
  std::size_t present = 0;    ///< of them, in the database before this sweep, or written by another one meanwhile
  std::size_t elsewhere = 0;  ///< of those present, written by another sweep meanwhile
  std::size_t done = 0;       ///< of them, done by this sweep and in the database
  std::size_t failed = 0;     ///< of those done: outcome error
  std::string first_failure;
  std::size_t unsettled = 0;  ///< of those done: no iteration began as an earlier one had
  std::int64_t actions = 0;   ///< of those done
  double seconds = 0;
  std::optional<double> seconds_to_go;  ///< see RemainingTime; none: not known yet
};

struct SweepOptions {
  int threads = 1;
  Shard shard = {};  ///< runs of others are left out
  /// Called before the first run, about five times a second and at the end, by the thread that called sweep().
  std::function<void(const SweepProgress&)> progress = {};
  /// When true, runs in progress are finished and written, and no other is begun.
  const std::atomic<bool>* stop = nullptr;
};

/// One run of a sweep.
struct SweepTask {
  std::uint32_t part = 0;
  std::size_t index = 0;  ///< in the part's grid
};

/// Does every run that the database does not have yet, or has as failed, and that no other sweep into the same file is
/// doing; waits for those. Each run is claimed in the database, by a lock that ends with its process (ClaimLock). The
/// rows are the same for any number of threads and after any number of interruptions, but for the columns that tell
/// wall time. A run that fails is a row with outcome error and ends nothing else.
/// @throws Disagreement  if another worker wrote a run meanwhile, with another result
/// @throws std::runtime_error  if the database cannot be written
SweepProgress sweep(std::span<const SweepPart> parts, Database& database, const SweepOptions& options);

/// The same for some runs, whatever the shard. Adds to what `progress` has counted, seconds too.
void sweep(std::span<const SweepPart> parts, std::span<const SweepTask> tasks, Database& database,
           const SweepOptions& options, SweepProgress& progress);

}  // namespace tidepool
