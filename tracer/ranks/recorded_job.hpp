// A job from the raw captures of its ranks' processes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tracer/lower/lower.hpp"
#include "tracer/raw/log.hpp"
#include "traces/job/job.hpp"

namespace tidepool {

/// The files of each rank of a job, by rank. A process records its rank; if it does not, its rank in its largest
/// communicator counts. Files of processes without a rank are left out.
/// @throws InputError  "run.raw: ranks 0, 2; expected 0 to 1"
std::map<std::size_t, std::vector<raw::Log>> by_rank(const std::string& folder, std::vector<raw::Log> logs);

struct RecordedJob {
  LoadedJob job;  ///< the caller sets the traces' paths and hashes
  /// Collectives and messages that some rank's trace lacks, or whose communicator no file names; they have become
  /// kernels.
  std::size_t unmatched = 0;
};

/// Joins the ranks' traces. The n-th collective of a communicator is the same one on all its ranks, and so is the n-th
/// message from one rank to another.
/// @param shorten  shortens a rank's trace before it is joined
/// @throws InputError  "run.raw: rank 1: collective 4 of ranks 0, 1 is all_to_all; expected all_reduce, as on rank 0"
RecordedJob join_recorded(const std::string& folder, std::map<std::size_t, std::vector<raw::Log>> ranks, LoweredOps ops,
                          const std::function<LoweredRank(LoweredRank)>& shorten);

}  // namespace tidepool
