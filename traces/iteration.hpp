// One of several iterations of a trace, as a trace of its own.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The records (Trace::steps()) from the iteration mark `number` (from 0) to the next one, or to the end. Live buffers
/// that were not allocated in the iteration existed before; buffers that are live at the end outlive it and are
/// outputs. A view that was made before counts as the content of its buffer. Times count from the first launch or start
/// of the iteration's ops.
/// @throws InputError  "iteration 3: the trace has 3, counted from 0", "iteration 0: the trace marks no iterations"
Trace one_iteration(const Trace& trace, std::size_t number);

/// The number of marked iterations, without those named "after ...": these hold the ops between an iteration and the
/// next one. one_iteration() numbers them too.
std::size_t complete_iterations(const Trace& trace);

/// The positions in Trace::events() at which the complete iterations begin, and at which the last one ends.
std::vector<std::size_t> bounds_of_iterations(const Trace& trace);

/// The range of ops, begin and end, of `count` complete iterations from number `first` on. It includes the ops between
/// these iterations.
/// @throws InputError  as iterations()
std::pair<std::size_t, std::size_t> ops_of_iterations(const Trace& trace, std::size_t first, std::size_t count);

/// The complete iterations [first, first + count), with the records between them, as a trace made like one_iteration().
/// @throws InputError  "2 iterations from number 2: the trace has 3, numbered from 0"
Trace iterations(const Trace& trace, std::size_t first, std::size_t count);

}  // namespace tidepool
