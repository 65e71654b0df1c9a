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

/// Runs `trace` under `spec`. A kOk result has passed replay(). Deterministic. kOutOfMemory and kTimeLimit are results.
/// @param keep_plan  whether to fill in Result::realised
/// @throws InputError  for an unknown pool, policy or option
/// @throws PlanError   if a policy asks for an impossible action
Result simulate(const Trace& trace, const RunSpec& spec, bool keep_plan = false);

/// The same with these policies instead of those in `spec`, for planners that try possible answers. Ops run in the
/// order of `trace`: Policy::reorder() is not asked.
/// @param may_swap    whether versions from before the step may begin on the host
/// @param matters_to  the longest makespan that matters: a longer run may be ok without having passed replay()
Result simulate_under(const Trace& trace, const RunSpec& spec, std::vector<std::unique_ptr<Policy>> policies,
                      bool may_swap, bool keep_plan = false, std::optional<Nanos> matters_to = {});

/// Executes `plan` unchanged and checks every action: live places do not overlap or exceed the capacity, and only
/// resident versions are used. Times and sizes equal those of simulate() if it made this plan.
/// @throws PlanError  naming the action and the reason, as in "alloc version 7 before op 12: it would overlap version
/// 3"
Totals replay(const Trace& trace, const RunSpec& spec, const Plan& plan);

/// Time of the step without policy and limit: every op runs on its stream as soon as its inputs are there and the host
/// has launched it, which takes `launch` for each op.
Nanos baseline_time(const Trace& trace, Nanos launch);

/// The same on the machine of a run, in the steady state if the run asks for it.
Nanos baseline_time(const Trace& trace, const RunSpec& spec);

}  // namespace tidepool
