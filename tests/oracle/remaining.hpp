// A lower bound of the time at which any continuation of a partial plan ends.
#pragma once

#include "tests/oracle/state.hpp"

namespace tidepool::optimum {

/// Every remaining op runs once, when its stream is free and its inputs are there. Needed versions that can only be
/// copied back use the link one after the other, in the order of the ops that read them first. Versions
/// that can only be recomputed take their ops' time once. Exact at the end of the step. O(ops * versions).
Nanos earliest_end(const TinyStep& step, const State& state);

/// Likewise a time before which no stream can have reached the next iteration.
Nanos earliest_next(const TinyStep& step, const State& state);

}  // namespace tidepool::optimum
