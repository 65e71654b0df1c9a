#include "simulator/engine/plan_of_runs.hpp"
#include "simulator/run.hpp"
#include "simulator/studies/audit/audit.hpp"

namespace tidepool {

std::vector<OpId> runs_of(const GraphSchedule& schedule) {
  std::vector<OpId> runs;
  for (std::size_t stage = 0; stage < schedule.again.size(); ++stage) {
    for (const std::uint32_t op : schedule.again[stage]) runs.push_back(OpId{op});
    runs.push_back(OpId{stage});
  }
  return runs;
}

std::vector<ReplayedSchedule> audit_schedules(const RecomputeGraph& graph) {
  const Trace trace = to_trace(graph);
  RunSpec spec;
  spec.pool = "ideal";
  spec.assume = Assumptions::find(std::string{to_text(graph.form)});
  std::vector<ReplayedSchedule> replayed;
  for (const GraphBudget& budget : graph.budgets) {
    if (!budget.schedule) continue;
    spec.capacity = budget.capacity;
    ReplayedSchedule one;
    one.budget = budget.name;
    one.capacity = budget.capacity;
    one.stored_cost = budget.schedule->cost;
    one.stored_peak = budget.schedule->peak;
    try {
      const Totals totals = replay(trace, spec, plan_of_runs(trace, runs_of(*budget.schedule)));
      one.cost = totals.makespan;
      one.peak = totals.peak;
    } catch (const PlanError& error) {
      one.refused = error.what();
    }
    replayed.push_back(std::move(one));
  }
  return replayed;
}

}  // namespace tidepool
