// The trace of one rank with the host's time and the waits for other ranks in the durations of its ops.
#pragma once

#include <vector>

#include "simulator/ranks/rendezvous.hpp"

namespace tidepool {

/// A rank of a simulated job as a step that can be run by itself. An op takes from when the op before it on its stream,
/// those that it is ordered after, and the last wait of the host before its launch have ended, until its own end; of a
/// collective, until the rank has arrived; with() says how long it takes from then on. Times count from the begin of the
/// rank's trace.
class RankTrace {
 public:
  /// @param times  of the rank in the job without policies and limits
  RankTrace(const Trace& trace, const RankProgram& program, const std::vector<OpTimes>& times);

  /// The step in which the n-th collective of the rank takes moving[n] after the rank's arrival.
  Trace with(const std::vector<Nanos>& moving) const;

  struct Meeting {
    OpId op;
    std::uint32_t collective;  ///< of the job
  };
  /// The rank's collectives in the order of its ops.
  const std::vector<Meeting>& meetings() const { return meetings_; }

 private:
  TraceData data_;
  std::vector<Meeting> meetings_;
};

}  // namespace tidepool
