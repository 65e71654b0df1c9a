// Time of a step that nothing hinders.
#pragma once

#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Time of the step when nothing is ever in the way: every op on its stream as soon as its inputs are there and the
/// host has launched it, which takes `launch` for each.
Nanos baseline_time(const Trace& trace, Nanos launch);

/// The same on the machine of a run, in the steady state where the run asks for that.
Nanos baseline_time(const Trace& trace, const RunSpec& spec);

}  // namespace tidepool
