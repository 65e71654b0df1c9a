// Repetition of a step, for pools that learn from iterations.
#pragma once

#include "traces/trace.hpp"

namespace tidepool {

/// The lifetimes of `times` iterations of a trace, without ops. Each iteration begins with a mark. A buffer that exists
/// both before and after the step stays. A buffer that the step finds and frees is allocated at the beginning of every
/// further iteration. A buffer that the step allocates and leaves is freed at the end of each iteration but the last.
/// @throws InputError  if `times` is below 1 or above 50 million, or there would be more than 50 million buffers
Trace repeat_lifetimes(const Trace& trace, int times);

}  // namespace tidepool
