// Critical path of a simulated job, and the waits of each rank for each other rank.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/studies/ranks/rendezvous.hpp"

namespace tidepool {

/// Time on the critical path, by kind of work.
struct PathShares {
  Nanos host;        ///< time of the host between launches, and in host waits after the awaited event
  Nanos ops;         ///< kernels, copies and memsets
  Nanos start;       ///< from the last event that an op waits for to the start of the op
  Nanos collective;  ///< the time in which collectives move data
  Nanos before;      ///< before the rank's trace begins
  Nanos total() const { return host + ops + start + collective + before; }
};

/// A part of the path on one rank.
struct PathPart {
  std::size_t rank = 0;
  Nanos begin, end;
  PathShares shares;
  std::uint32_t left_at = RankOp::kNone;  ///< the collective at which the path changes to the next rank; kNone: the end
};

struct JobPath {
  std::vector<PathPart> parts;      ///< in the order of time; each begins where the previous one ends
  std::vector<PathShares> of_rank;  ///< by rank
};

/// The critical path. It is found backwards from the op of all ranks that ends last: from an op to the event that the
/// op waited for last, and from a collective to the rank that arrived last. Its parts add up to the makespan. O(ops).
JobPath critical_path_of(const LoadedJob& job, const std::vector<RankProgram>& programs, const JobTimes& times);

/// Waiting times of ranks in collectives.
struct JobWaits {
  std::vector<std::vector<Nanos>> by;    ///< [waiting rank][rank that arrived last]
  Nanos of(std::size_t rank) const;      ///< total time that a rank waited
  Nanos caused(std::size_t rank) const;  ///< total time that other ranks waited for a rank
};

JobWaits waits_of(const LoadedJob& job, const JobTimes& times, const std::vector<RankProgram>& programs);

}  // namespace tidepool
