// Sweep whose shards run on other machines, by Slurm or on hosts that GNU parallel reaches, and whose results are
// collected here.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "simulator/studies/sweep/sweep_request.hpp"

namespace tidepool {

class Launcher {
 public:
  virtual ~Launcher() = default;

  /// Waits for tasks of this script that still run because an earlier program was killed.
  virtual void wait_for_earlier(const std::string& /*script*/, const std::atomic<bool>& /*stop*/) {}

  /// Runs the script for every index, and returns when all these tasks have ended. A task gets its index as argument;
  /// on Slurm, in SLURM_ARRAY_TASK_ID. The results are in the files that the tasks wrote. The script and the folder of
  /// its output are on a file system that all machines share.
  /// @param log   path of each task's output; the last "%" stands for the index
  /// @param stop  when it becomes true, the tasks are told to end; on Slurm, they may still run for a moment afterwards
  /// @throws InputError          if a required program is missing
  /// @throws std::runtime_error  with the output of a program of Slurm that failed
  virtual void run(const std::string& script, const std::string& log, std::span<const int> indices,
                   const std::atomic<bool>& stop) = 0;
};

/// Launches a job array: submitted with sbatch, followed with squeue, ended with scancel.
/// @param options  further options of sbatch, as in {"--partition=short"}; by default, a task has one node and core
std::unique_ptr<Launcher> make_slurm_launcher(std::vector<std::string> options);

/// Launches one task at a time on each host. A task without -j uses all cores of its host.
/// @param hosts  names for ssh; ":" is this machine, without ssh
std::unique_ptr<Launcher> make_host_launcher(std::vector<std::string> hosts);

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
