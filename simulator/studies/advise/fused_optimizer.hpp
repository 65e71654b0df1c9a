// A step whose optimizer updates all parameters by one kernel.
#pragma once

#include <optional>

#include "traces/trace.hpp"

namespace tidepool {

/// The step if Adam or AdamW works with fused=True: without the temporary tensors that its ops on lists of tensors
/// make, and without the ops that use only these. Each other op keeps its time, so the time of the step is an upper
/// bound.
/// @return  none if the optimizer is another one, or makes no temporary tensors
std::optional<Trace> with_fused_optimizer(const Trace& step);

}  // namespace tidepool
