// Launchers of a sweep's shards: Slurm, or hosts that GNU parallel reaches.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

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

}  // namespace tidepool
