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
  /// Start times of the ops without their waits for swap-ins, since a better plan avoids these waits. The load is that
  /// of a step without a plan.
  StepCircle circle;
  /// By op: whether the lane was busy when the op started, and stayed busy until an op waited for it. More bytes on the
  /// lane in such a time lengthen the step. One list for the lane of swap-outs, one for that of swap-ins.
  std::vector<bool> exposed_out, exposed_in;
};

/// Replays a realised plan. O(actions + ops).
/// @param circle  of the trace
/// @param plan    of a run that ended well
RealisedStep realised_step(const Trace& trace, const RunSpec& spec, const StepCircle& circle, const Plan& plan);

/// Start times in the last iteration of a run: by op, and of the end of the step. They include all waits, but not the
/// time of earlier reruns. Replays the realised plan of a step with one stream. O(actions + ops).
std::vector<Nanos> clock_of_plan(const Trace& trace, const RunSpec& spec, const Plan& plan);

}  // namespace tidepool
