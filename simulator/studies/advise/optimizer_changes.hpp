// Steps with another optimizer: one that updates each parameter in backward, as soon as its gradient is complete, or
// one that updates all parameters by one kernel.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "traces/trace.hpp"

namespace tidepool {

/// The changed step.
struct EarlyUpdates {
  Trace trace;
  std::size_t updates = 0;  ///< updates that run in backward
};

/// The step if each parameter has a hook that updates it and frees its gradient. PyTorch calls the hook when the
/// gradient is complete (Tensor.register_post_accumulate_grad_hook). Ops of the optimizer on lists of tensors are
/// divided into one op per tensor first.
///
/// Two ops of the optimizer belong to one update if they share a buffer that the step writes. The update runs directly
/// after the last op of forward and backward that uses one of its buffers (a buffer that the step never writes does not
/// count). Its temporary buffers move with it. A gradient that no other op uses later is freed after the update.
/// A gradient that the previous step left and no op uses does not exist any more. Everything else stays as recorded.
///
/// None if no update moves, or if hooks cannot make the updates. Hooks cannot if the step has several backward passes,
/// because a hook would update after each pass. They also cannot if an update reads several gradients or changes one,
/// because the script then clips or scales gradients between backward and the optimizer's step.
/// O(uses log uses + updates * buffers).
std::optional<EarlyUpdates> update_early(const Trace& trace);

/// Why hooks cannot make the updates, as a clause: "the step has several backward passes"; empty if they can, or if no
/// update moves.
std::string no_early_updates(const Trace& trace);

/// The step if Adam or AdamW works with fused=True: without the temporary tensors that its ops on lists of tensors
/// make, and without the ops that use only these. Each other op keeps its time, so the time of the step is an upper
/// bound.
/// @return  none if the optimizer is another one, or makes no temporary tensors
std::optional<Trace> with_fused_optimizer(const Trace& step);

}  // namespace tidepool
