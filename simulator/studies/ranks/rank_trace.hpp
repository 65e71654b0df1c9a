// Trace of one rank whose ops' durations contain the host's time and the waits for other ranks.
#pragma once

#include <vector>

#include "simulator/studies/ranks/rendezvous.hpp"

namespace tidepool {

/// A rank of a simulated job as a step that can be run by itself. The duration of an op begins when all of these have
/// ended: the previous op on its stream, the ops that it is ordered after, and the host's last wait before its launch.
/// The duration of a collective ends at the arrival of the rank, and with() adds the time after it; that of any other
/// op ends with the op. Times count from the beginning of the rank's trace.
class RankTrace {
 public:
  /// @param times  times of the rank in the job without policies and limits
  RankTrace(const Trace& trace, const RankProgram& program, const std::vector<OpTimes>& times);

  /// The step in which the n-th collective of the rank takes moving[n] after the rank's arrival.
  Trace with(const std::vector<Nanos>& moving) const;

  /// Plans may run no collective again, since the other ranks would not take part.
  void run_collectives_once();

  struct Meeting {
    OpId op;
    std::uint32_t collective;  ///< of the job
  };
  /// Collectives of the rank, in the order of its ops.
  const std::vector<Meeting>& meetings() const { return meetings_; }

 private:
  TraceData data_;
  std::vector<Meeting> meetings_;
};

}  // namespace tidepool
