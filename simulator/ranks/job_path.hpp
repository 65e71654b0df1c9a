// Critical path of a simulated job, and the waits of each rank for each other rank.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/ranks/rendezvous.hpp"

namespace tidepool {

/// Time on the critical path, by the kind of work that the path goes through.
struct PathShares {
  Nanos host;        ///< the host between launches, and returning from a wait
  Nanos ops;         ///< kernels, copies and memsets
  Nanos start;       ///< from the end of the last wait of an op to its start
  Nanos collective;  ///< collectives that move data
  Nanos before;      ///< before the rank's trace begins
  Nanos total() const { return host + ops + start + collective + before; }
};

/// A part of the path on one rank.
struct PathPart {
  std::size_t rank = 0;
  Nanos begin, end;
  PathShares shares;
  std::uint32_t left_at = RankOp::kNone;  ///< the collective in which the path goes on to the next rank; kNone: the end
};

struct JobPath {
  std::vector<PathPart> parts;      ///< in the order of time; one begins where the one before ends
  std::vector<PathShares> of_rank;  ///< by rank
};

/// The longest path: it goes back from the last op of all, from each op to the event that the op waited for last, and
/// in a collective to the rank that arrived last. Its parts add up to the makespan. O(ops).
JobPath critical_path_of(const LoadedJob& job, const std::vector<RankProgram>& programs, const JobTimes& times);

/// Time in which ranks waited in collectives.
struct JobWaits {
  std::vector<std::vector<Nanos>> by;    ///< by the rank that waited, by the rank that arrived last
  Nanos of(std::size_t rank) const;      ///< total that a rank waited
  Nanos caused(std::size_t rank) const;  ///< total that others waited for a rank
};

JobWaits waits_of(const LoadedJob& job, const JobTimes& times, const std::vector<RankProgram>& programs);

}  // namespace tidepool
