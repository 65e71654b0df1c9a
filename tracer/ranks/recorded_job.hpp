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

struct RecordedJob {
  LoadedJob job;  ///< the caller sets the traces' paths and hashes
  /// Collectives and messages that some rank's trace lacks, or whose communicator no file names; they have become
  /// kernels.
  std::size_t unmatched = 0;
  std::size_t missing = 0;  ///< ranks that wrote no files: the widest communicator has so many more than the job
};

/// Sentences about what the job lacks, see RecordedJob; none if it lacks nothing.
std::vector<std::string> notes_of(const RecordedJob& recorded);

/// Joins the ranks' traces. The n-th collective of a communicator is the same one on all its ranks, and so is the n-th
/// message from one rank to another.
/// @param shorten  shortens a rank's trace before it is joined
/// @throws InputError  "run.raw: rank 1: collective 4 of ranks 0, 1 is all_to_all; expected all_reduce, as on rank 0"
RecordedJob join_recorded(const std::string& folder, std::map<std::size_t, std::vector<raw::Log>> ranks, LoweredOps ops,
                          const std::function<LoweredRank(LoweredRank)>& shorten);

}  // namespace tidepool
