// Whole plans as answers of planners.
#pragma once

#include <functional>
#include <memory>

#include "simulator/plan.hpp"
#include "simulator/policy.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A policy that executes a whole plan, and the cost of its run.
struct PlanAnswer {
  std::function<std::unique_ptr<Policy>()> make;
  Result result;
};

/// Extends a plan of one iteration to the run of `spec`. If the step is repeated, the next iterations find buffers that
/// outlive the step at the places that the first iteration leaves.
Plan repeated_as_asked(const Trace& trace, const RunSpec& spec, Plan plan);

/// The answer that executes a realised plan of this trace, with the plan's places where the run's pool is one arena.
/// @param swap  see simulate_under()
PlanAnswer answer_of_plan(const Trace& trace, const RunSpec& spec, Plan plan, bool swap);

}  // namespace tidepool
