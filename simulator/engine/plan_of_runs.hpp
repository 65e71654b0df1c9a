// A whole plan of a step, made from the order in which its ops run.
#pragma once

#include <span>
#include <vector>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Whether a step runs on one stream and each op writes whole new buffers: nothing in place, no views, no sources.
bool writes_anew(const Trace& trace);

/// The plan that runs ops in the order of `runs`. An output lives until its last reader before the op's next run;
/// without a reader, until its own op ends. A buffer that outlives the step lives from the last run of its op to
/// the end; one from before the step lives until the end. Bytes are counted, not placed.
/// @param trace  writes_anew() is true for it
/// @param runs   has every op of the program at least once, the first runs in program order
Plan plan_of_runs(const Trace& trace, std::span<const OpId> runs);

}  // namespace tidepool
