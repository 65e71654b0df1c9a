// The program of a step with checkpointed calls: its allocations, frees and ops, with the ops that run again.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/studies/advise/checkpoint.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A step of a changed program.
struct ChangedStep {
  EventKind kind = EventKind::kRun;
  std::uint32_t id = 0;  ///< of the op (kRun) or of the buffer
  bool again = false;    ///< the op runs for the second time, or the buffer is the second run's
};

/// The changed program. No module of `calls` may lie in another one. About O(steps).
std::vector<ChangedStep> checkpointed_steps(const Trace& trace, const std::vector<const CheckpointedCall*>& calls);

struct ChangedPeak {
  Bytes bytes;
  std::size_t position = 0;  ///< the peak is between the op before this position of the unchanged program and the
                             ///< next op
};
ChangedPeak peak_of(const Trace& trace, const std::vector<ChangedStep>& steps);

/// The changed program as a trace.
Trace checkpointed_trace(const Trace& trace, const std::vector<const CheckpointedCall*>& calls);

}  // namespace tidepool
