// Job: the traces of all ranks of a training step, and the collectives that join them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/input.hpp"
#include "traces/base/quantity.hpp"
#include "traces/ids.hpp"
#include "traces/trace.hpp"

namespace tidepool {

struct JobRank {
  std::string trace;  ///< path of its file, relative to the job file
  std::string hash;   ///< of the trace
  Nanos start;        ///< begin of the trace's clock, since the start of the job
  bool operator==(const JobRank&) const = default;
};

/// Ranks that communicate with each other.
struct JobGroup {
  std::string name;
  std::vector<std::size_t> ranks;  ///< ascending
  bool operator==(const JobGroup&) const = default;
};

/// One collective of a group: an op of each of its ranks.
struct JobCollective {
  std::string name;                 ///< as in all_reduce
  std::size_t group = 0;            ///< index into the groups
  std::vector<OpId> ops = {};       ///< one for each rank of the group, in its order
  std::optional<Bytes> input = {};  ///< input of the rank with the largest one; nothing = not recorded
  Nanos cost = {};  ///< without waiting: the least duration over all ranks, since the last to arrive does not wait
  bool operator==(const JobCollective&) const = default;
};

struct Job {
  std::vector<JobRank> ranks;
  std::vector<JobGroup> groups;
  std::vector<JobCollective> collectives;  ///< those of one group are in the order in which it runs them
  Nanos clock_residual;                    ///< largest difference of the recorded ends of one collective
  bool operator==(const Job&) const = default;
};

/// A job with its traces, by rank.
struct LoadedJob {
  Job job;
  std::vector<Trace> traces;
};

/// Whether the first bytes are those of a job file.
bool is_job_file(const Input& head);
/// Whether a path is a job file; false for a folder and a file that cannot be read.
bool is_job_file(const std::string& path);

/// Reads a job file. No other keys than those that job_file() writes are allowed.
/// @throws InputError  "job.json: ranks[1].start_ns: \"0\"; expected a whole number from 0 to 2^60"
Job parse_job(const Input& input);

/// The job as JSON that parse_job() reads.
std::string job_file(const Job& job);

/// Reads a job file and the traces that it names.
/// @throws InputError  as parse_job() and load_trace(), if a trace is not the one that the job was made of, or if a
///                     collective of the job is no collective in a trace, or is one of two with the same op
LoadedJob load_job(const std::string& path);

}  // namespace tidepool
