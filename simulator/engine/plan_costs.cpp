#include "simulator/engine/plan_costs.hpp"

#include <algorithm>

#include "simulator/engine/boundary.hpp"
#include "simulator/engine/confirmation.hpp"
#include "simulator/ordered_step.hpp"
#include "simulator/run.hpp"

namespace tidepool {

std::vector<Totals> costs_of_iterations(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  const PlannedStep step{trace, plan};
  Replay replay{step.trace(), spec};
  replay.apply(plan.actions);
  return replay.finish();
}

Totals whole_cost(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  return sum_of(costs_of_iterations(trace, spec, plan));
}

Totals replay(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  const std::vector<Totals> iterations = costs_of_iterations(trace, spec, plan);
  return mean_of_last(iterations, std::clamp(plan.cycle, 1, static_cast<int>(iterations.size())));
}

}  // namespace tidepool
