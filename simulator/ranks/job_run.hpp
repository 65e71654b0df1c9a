// One simulation of a job as a user asks for it, and its results for people and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/ranks/job_path.hpp"

namespace tidepool {

/// What differs from the recording.
struct JobChange {
  std::vector<std::size_t> ranks = {};  ///< whose own time changes; empty: of all
  double factor = 1;                    ///< of their own time
  OwnTime what = OwnTime::kAll;
  std::string table = {};  ///< all-reduces take what it says; "" = as recorded
};

struct JobResult {
  std::vector<RankProgram> programs;
  std::vector<Nanos> costs;  ///< by collective
  JobTimes times;
  JobPath path;
  JobWaits waits;
  std::optional<Nanos> off;  ///< of a job as it was recorded: largest difference of an end of a collective
  Nanos recorded;            ///< when the recording's last op ended
};

/// @throws InputError  as simulate_job(), "--rank: 9; expected ranks of the job, 0 to 7", and where a table has no such time
JobResult run_job(const LoadedJob& job, const std::string& path, const JobChange& change, std::size_t threads);

void print_job(const LoadedJob& job, const std::string& path, const JobResult& result);
std::string job_json(const LoadedJob& job, const std::string& path, const JobResult& result);

}  // namespace tidepool
