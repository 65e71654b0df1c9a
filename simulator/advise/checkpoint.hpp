// A step whose modules are wrapped in torch.utils.checkpoint (use_reentrant=False): what is freed, and what runs again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/advise/module_calls.hpp"
#include "simulator/advise/step_uses.hpp"
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

/// Nothing: checkpointing the call changes what is computed, as it or what follows writes to its inputs, or saves nothing.
std::optional<CheckpointedCall> checkpointed_call(const Trace& trace, const StepUses& uses, const ModuleCall& call);

}  // namespace tidepool
