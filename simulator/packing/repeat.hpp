// Repetition of a step, for pools that learn from iterations.
#pragma once

#include "traces/trace.hpp"

namespace tidepool {

/// The lifetimes of `times` iterations of a trace, without ops; each begins with an iteration mark. A buffer that
/// exists before and after the step stays. One that exists only before it is allocated at the beginning of every
/// further iteration. One that exists only after it is freed at the end of all iterations but the last.
/// @throws InputError  if `times` is below 1 or so large that there would be more than 50 million buffers
Trace repeat_lifetimes(const Trace& trace, int times);

}  // namespace tidepool
