// Simulation of one run, and execution of a plan.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

class Policy;

/// Runs `trace` under `spec`; what is ok has passed replay(). Deterministic. Out of memory, time limit are outcomes.
/// @param keep_plan  whether Result::realised is wanted
/// @throws InputError  for an unknown pool, policy or option
/// @throws PlanError   if a policy asks for what cannot be done
Result simulate(const Trace& trace, const RunSpec& spec, bool keep_plan = false);

/// The same under these policies instead of those that the spec names: for planners that try what they might answer.
/// @param may_swap    whether what existed before the step may begin on the host
/// @param matters_to  the longest makespan that is of interest: a longer run is ok without having passed replay()
Result simulate_under(const Trace& trace, const RunSpec& spec, std::vector<std::unique_ptr<Policy>> policies,
                      bool may_swap, bool keep_plan = false, std::optional<Nanos> matters_to = {});

/// Executes `plan` as it stands and checks every action: no overlap of live places, nothing beyond the capacity, no use
/// of what is not there. Clocks in ns, sizes in bytes, equal to what simulate() reported if it made this plan.
/// @throws PlanError  naming the action and the reason, as in "alloc version 7 before op 12: it would overlap version
/// 3"
Totals replay(const Trace& trace, const RunSpec& spec, const Plan& plan);

/// Time of the step when nothing is ever in the way: every op on its stream as soon as its inputs are there and the
/// host has launched it, which takes `launch` for each.
Nanos baseline_time(const Trace& trace, Nanos launch);

/// The same on the machine of a run, in the steady state where the run asks for that.
Nanos baseline_time(const Trace& trace, const RunSpec& spec);

}  // namespace tidepool
