// One of several iterations of a trace, as a trace of its own.
#pragma once

#include <cstddef>
#include <utility>

#include "traces/trace.hpp"

namespace tidepool {

/// The steps between the iteration mark `number` (from 0) and the next one, or the end. Live buffers that were not
/// allocated in the iteration existed before; buffers that are live at the end outlive it and are outputs. A view that
/// was made before counts as the content of its buffer. Times count from the first launch or start of the iteration's
/// ops.
/// @throws InputError  "iteration 3: the trace has 3, counted from 0", "iteration 0: the trace marks no iterations"
Trace one_iteration(const Trace& trace, std::size_t number);

/// The number of iterations that the trace marks. Ops after the last one ("after 3") are not an iteration.
std::size_t complete_iterations(const Trace& trace);

/// The ops [first, last) of the complete iterations [first, first + count), and the ops between them.
/// @throws InputError  as iterations()
std::pair<std::size_t, std::size_t> ops_of_iterations(const Trace& trace, std::size_t first, std::size_t count);

/// The complete iterations [first, first + count) and the steps between them, as a trace made like one_iteration().
/// @throws InputError  "2 iterations from number 2: the trace has 3, numbered from 0"
Trace iterations(const Trace& trace, std::size_t first, std::size_t count);

}  // namespace tidepool
