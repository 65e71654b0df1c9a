// The record of a step under a plan, from which the next plan is made.
#pragma once

#include <vector>

#include "policies/planning/gaps/step_circle.hpp"
#include "simulator/plan.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The last iteration of a run.
struct RealisedStep {
  /// Start times of the ops without their waits for swap-ins, since a better plan has these in time. The load is that
  /// of a step without a plan.
  StepCircle circle;
  /// By op: whether a copy issued before it belongs to a sequence of copies without a pause whose end an op waited for.
  /// More bytes in such a sequence lengthen the step. For copies to the host, and to the device.
  std::vector<bool> exposed_out, exposed_in;
};

/// Replays a realised plan. O(actions + ops).
/// @param circle  of the trace
/// @param plan    of a run that ended well
RealisedStep realised_step(const Trace& trace, const RunSpec& spec, const StepCircle& circle, const Plan& plan);

/// By op, and at the end of the step: start times in the last iteration of a run, with all waits, less the time of the
/// reruns before it. Replays the realised plan, of a step with one stream. O(actions + ops).
std::vector<Nanos> clock_of_plan(const Trace& trace, const RunSpec& spec, const Plan& plan);

}  // namespace tidepool
