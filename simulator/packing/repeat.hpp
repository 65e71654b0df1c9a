// A step again and again: what pools that learn from iterations need of a trace of one step.
#pragma once

#include "traces/trace.hpp"

namespace tidepool {

/// The lifetimes of `times` iterations of a trace, without ops; each begins with an iteration mark. What exists before
/// and after the step stays. What only exists before it is allocated at the beginning of every further iteration; what
/// only exists after it is freed at the end of all iterations but the last.
/// @throws InputError  if `times` is below 1 or that makes more than 50 million buffers
Trace repeat_lifetimes(const Trace& trace, int times);

}  // namespace tidepool
