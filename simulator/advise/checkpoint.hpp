// A step whose modules are wrapped in torch.utils.checkpoint (use_reentrant=False): what is freed, and what runs again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/advise/module_calls.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// How one call of a module changes the step if it is checkpointed. Positions are in Trace::steps().
///
/// What its forward makes and would keep for backward is freed in forward, as soon as nothing there uses it. The first
/// backward op that needs anything of the forward runs the call again, up to the last op that saves something; what is
/// made then lives as long as backward needs it. The call's inputs live until backward has left the module.
struct CheckpointedCall {
  /// The end of a buffer: behind the step at this position.
  struct End {
    BufferId buffer;
    std::size_t position = 0;
  };
  ModuleCall call;
  std::size_t again = 0;        ///< in front of this step the call runs again
  std::size_t again_stop = 0;   ///< it runs again up to here
  std::size_t left = 0;         ///< the last op of its backward that needs anything of the forward
  std::vector<End> ends;        ///< new ends of what the first run made
  std::vector<End> again_ends;  ///< of what runs again: ends behind the second run; all else ends with it
  std::vector<BufferId> inputs;
  Nanos duration;  ///< of the ops that run again
};

/// The buffers of a step with what uses them, made once for all calls.
class StepUses {
 public:
  struct At {
    std::size_t position = 0;
    bool writes = false;
  };
  struct Life {
    std::size_t alloc, free;  ///< positions of its steps; kNowhere: none
    std::vector<At> uses;     ///< what is a chance find beside uses that the framework knows is left out
  };
  static constexpr std::size_t kNowhere = SIZE_MAX;

  explicit StepUses(const Trace& trace);
  const Life& of(BufferId buffer) const { return lives_[buffer.index()]; }

 private:
  std::vector<Life> lives_;
};

/// Nothing: checkpointing the call changes what is computed, as it or what follows writes to its inputs, or saves nothing.
std::optional<CheckpointedCall> checkpointed_call(const Trace& trace, const StepUses& uses, const ModuleCall& call);

/// A step of a changed program.
struct ChangedStep {
  StepKind kind = StepKind::kRun;
  std::uint32_t id = 0;
  bool again = false;  ///< the op runs for the second time; the buffer is that of the second run
};

/// The changed program. No module of `calls` lies in another. O(steps).
std::vector<ChangedStep> checkpointed_steps(const Trace& trace, const std::vector<const CheckpointedCall*>& calls);

struct ChangedPeak {
  Bytes bytes;
  std::size_t position = 0;  ///< in front of this step of the program as it was
};
ChangedPeak peak_of(const Trace& trace, const std::vector<ChangedStep>& steps);

/// The changed program as a trace.
Trace checkpointed_trace(const Trace& trace, const std::vector<const CheckpointedCall*>& calls);

}  // namespace tidepool
