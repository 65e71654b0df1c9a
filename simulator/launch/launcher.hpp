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

  /// Waits for what an earlier program left running of this script when it was killed.
  virtual void wait_for_earlier(const std::string& /*script*/, const std::atomic<bool>& /*stop*/) {}

  /// Runs `sh SCRIPT INDEX` for every index somewhere and returns when none of them runs any more. How they fared is
  /// seen from what they wrote. The script and its output's folder are on a file system that all machines share.
  /// @param log   where each writes what it says, the last "%" standing for the index
  /// @param stop  when true, ends them and returns
  /// @throws InputError          if a program that this needs is not there
  /// @throws std::runtime_error  with what such a program said
  virtual void run(const std::string& script, const std::string& log, std::span<const int> indices,
                   const std::atomic<bool>& stop) = 0;
};

/// A job array: submitted with sbatch, followed with squeue, ended with scancel.
/// @param options  for sbatch, in addition to a task on one node with one core, as in {"--partition=short"}
std::unique_ptr<Launcher> make_slurm_launcher(std::vector<std::string> options);

/// One task at a time on each host, which uses all of its cores.
/// @param hosts  as ssh takes them; ":" is this machine without ssh
std::unique_ptr<Launcher> make_host_launcher(std::vector<std::string> hosts);

}  // namespace tidepool
