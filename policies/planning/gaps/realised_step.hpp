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
  /// The ops' start times, without their waits for swap-ins, which a better plan has in time. The load is that of a
  /// step without any plan.
  StepCircle circle;
  /// By op: whether a copy issued before it belongs to an unbroken run of copies whose end an op waited for. More bytes
  /// in such a run lengthen the step. To the host, and to the device.
  std::vector<bool> exposed_out, exposed_in;
};

/// Replays a realised plan. O(actions + ops).
/// @param circle  of the trace
/// @param plan    of a run that ended well
RealisedStep realised_step(const Trace& trace, const RunSpec& spec, const StepCircle& circle, const Plan& plan);

}  // namespace tidepool
