// Replay of published recomputation schedules against the cost and the peak that were stored with them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/plan.hpp"
#include "traces/import/recompute_graph.hpp"

namespace tidepool {

/// A stored schedule: its stored cost and peak, and those of its replay.
struct ReplayedSchedule {
  std::string budget;  ///< its name
  Bytes capacity;
  Nanos stored_cost, cost;
  Bytes stored_peak, peak;
  std::string refused;  ///< why it cannot be replayed: PlanError::what(); "" if it can

  bool matches() const { return refused.empty() && cost == stored_cost && peak == stored_peak; }
};

/// All runs of a schedule in order: before each op of the program, the ops that are rerun there.
std::vector<OpId> runs_of(const GraphSchedule& schedule);

/// Replays all stored schedules of a graph with the graph's memory model, each within its budget.
std::vector<ReplayedSchedule> audit_schedules(const RecomputeGraph& graph);

}  // namespace tidepool
