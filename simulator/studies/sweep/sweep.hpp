// Sweep: many runs on a few threads, stored in a database.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "simulator/studies/sweep/database.hpp"
#include "simulator/studies/sweep/grid.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "simulator/studies/sweep/shard.hpp"

namespace tidepool {

/// A trace, which all threads share, and the grid of its runs.
struct SweepPart {
  NamedTrace trace;
  Grid grid;
};

/// The file name of a part's trace; its path if the trace of another part has the same file name.
std::string title_of(const SweepPart& part, std::span<const SweepPart> parts);

struct SweepProgress {
  std::size_t runs = 0;       ///< runs of the grids that are in this shard
  std::size_t present = 0;    ///< part of `runs`: in the database before this sweep, or written by another sweep since
  std::size_t elsewhere = 0;  ///< part of `present`: written by another sweep since
  std::size_t done = 0;       ///< part of `runs`: done by this sweep and in the database
  std::size_t failed = 0;     ///< part of `done`: outcome error
  std::string first_failure;
  std::size_t unsettled = 0;            ///< part of `done`: no iteration began in the state of an earlier one
  std::int64_t actions = 0;             ///< sum over all runs in `done`
  double seconds = 0;                   ///< wall time
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
  std::size_t index = 0;  ///< index in the part's grid
};

/// Executes every run that the database does not have, or has as failed. Each run is claimed in the database, with a
/// lock that ends with its process (ClaimLock). If another sweep into the same file has claimed a run, this sweep waits
/// for its result. Except the columns of wall time, rows are the same for any number of threads and after any number of
/// interruptions. A run that fails becomes a row with outcome error and does not stop the sweep.
/// @throws Disagreement  if another worker wrote a run meanwhile, with another result
/// @throws std::runtime_error  if the database cannot be written
SweepProgress sweep(std::span<const SweepPart> parts, Database& database, const SweepOptions& options);

/// sweep() for given runs of any shard. Adds to all counts of `progress`, and to its seconds.
void sweep(std::span<const SweepPart> parts, std::span<const SweepTask> tasks, Database& database,
           const SweepOptions& options, SweepProgress& progress);

}  // namespace tidepool
