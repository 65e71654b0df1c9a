// Replay of published recomputation schedules against the cost and the peak that were stored with them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/plan.hpp"
#include "traces/import/recompute_graph.hpp"

namespace tidepool {

/// One stored schedule, as it was stored and as it was replayed.
struct ReplayedSchedule {
  std::string budget;
  Bytes capacity;
  Nanos stored_cost, cost;
  Bytes stored_peak, peak;
  std::string refused;  ///< why it cannot be replayed: PlanError::what(); "" if it can

  bool matches() const { return refused.empty() && cost == stored_cost && peak == stored_peak; }
};

/// What a schedule runs: in front of each op of the program those that run again there.
std::vector<OpId> runs_of(const GraphSchedule& schedule);

/// Replays all stored schedules of a graph, in its model and within their budgets.
std::vector<ReplayedSchedule> audit_schedules(const RecomputeGraph& graph);

}  // namespace tidepool
