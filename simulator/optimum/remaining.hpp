// A time before which no continuation of a partial plan ends.
#pragma once

#include "simulator/optimum/state.hpp"

namespace tidepool::optimum {

/// Every op that is left runs once, when its stream is free and its inputs are there; what is wanted and can only be
/// copied back takes the link one after the other, in the order in which it is wanted at the latest; what can only be
/// recomputed takes its ops' time once. Exact at the end of the step. O(ops * versions).
Nanos earliest_end(const TinyStep& step, const State& state);

/// Likewise a time before which no stream can have come to the next iteration.
Nanos earliest_next(const TinyStep& step, const State& state);

}  // namespace tidepool::optimum
