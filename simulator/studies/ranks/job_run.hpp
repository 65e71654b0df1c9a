// Simulation of a job with the user's changes, and its results as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/studies/ranks/job_path.hpp"

namespace tidepool {

/// Changes of a job against its recording.
struct JobChange {
  std::vector<std::size_t> ranks = {};  ///< ranks whose own time changes; empty: all
  double factor = 1;                    ///< their own time is multiplied by it
  OwnTime what = OwnTime::kAll;
  std::string table = {};  ///< name of a table with the times of all-reduces; "": the recorded times
};

/// The job to simulate.
struct ChangedJob {
  std::vector<RankProgram> programs;
  std::vector<Nanos> costs;  ///< by collective
};

/// @throws InputError  as rank_programs(); "--rank: 9; expected ranks of the job, 0 to 7"; if a table lacks a time
ChangedJob changed_job(const LoadedJob& job, const std::string& path, const JobChange& change);

struct JobResult : ChangedJob {
  JobTimes times;
  JobPath path;
  JobWaits waits;
  std::optional<Nanos> off;  ///< for a job without changes: the largest error of a collective's recorded end
  Nanos recorded;            ///< end of the last recorded op
};

/// @throws InputError  as changed_job() and simulate_job()
JobResult run_job(const LoadedJob& job, const std::string& path, const JobChange& change, std::size_t threads);

void print_job(const LoadedJob& job, const std::string& path, const JobResult& result);
std::string job_json(const LoadedJob& job, const std::string& path, const JobResult& result);

}  // namespace tidepool
