// Record of a step under a plan, from which the next plan for it is made.
#pragma once

#include <vector>

#include "policies/planning/gaps/step_circle.hpp"
#include "simulator/plan.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The last iteration of a run.
struct RealisedStep {
  /// Ops start when they did, but for what they waited for copies to the device: a better plan has those in time. The
  /// load is that of a step without any plan.
  StepCircle circle;
  /// By op: whether a copy that is issued in front of it is one of those, one right behind the other, that an op waited
  /// for in the end. Any more of these lengthen the step. To the host, and to the device.
  std::vector<bool> exposed_out, exposed_in;
};

/// Carries a realised plan out again. O(actions + ops).
/// @param circle  of the trace
/// @param plan    of a run that ended well
RealisedStep realised_step(const Trace& trace, const RunSpec& spec, const StepCircle& circle, const Plan& plan);

}  // namespace tidepool
