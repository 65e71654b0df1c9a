// A step whose optimizer updates each parameter in backward, as soon as its gradient is complete.
#pragma once

#include <cstddef>
#include <optional>

#include "traces/trace.hpp"

namespace tidepool {

/// The changed program and what it is about.
struct EarlyUpdates {
  Trace trace;
  std::size_t updates = 0;  ///< updates that run in backward
};

/// The step as a hook on each parameter makes it (Tensor.register_post_accumulate_grad_hook, which PyTorch calls when
/// the gradient is complete): it updates the parameter and frees its gradient. Ops on lists of tensors are divided
/// first.
///
/// Ops of the optimizer that use a common buffer, whose content the step changes, are one update. It runs directly
/// behind the last op of forward and backward that makes what it reads, or that uses what it overwrites, and brings its
/// temporary buffers with it. A gradient that no other op uses later is freed behind it. Gradients that are left from
/// the step before do not exist any more. Everything else stays as it was recorded.
///
/// Nothing if no update moves, or if a hook cannot do it: an update reads several gradients or changes one, as where the
/// script clips or scales them between backward and the optimizer's step. O(uses log uses).
std::optional<EarlyUpdates> update_early(const Trace& trace);

}  // namespace tidepool
