// One iteration of a trace of several, as a trace of its own.
#pragma once

#include <cstddef>

#include "traces/trace.hpp"

namespace tidepool {

/// What stands between the iteration mark `number` (from 0) and the next one, or the end. Buffers that are live there
/// although they were not allocated in it existed before; what is live at the end outlives it and is an output. Views
/// of before are their buffers' content. Times count from the first launch or start of the iteration's ops.
/// @throws InputError  "iteration 3: the trace has 3, counted from 0", "iteration 0: the trace marks no iterations"
Trace one_iteration(const Trace& trace, std::size_t number);

}  // namespace tidepool
