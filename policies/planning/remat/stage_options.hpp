// Further options of the stages of a chain: which saved values each keeps, by integer programs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "policies/planning/remat/checkmate.hpp"
#include "policies/planning/remat/trace_chain.hpp"
#include "simulator/options.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The integer programs of a stage.
struct StagePrograms {
  std::size_t groups;  ///< of its values, at most: see condense_stage
  int saves;           ///< budgets of the bytes that it keeps, at least 2
  int peaks;           ///< budgets of the bytes that its backward step uses, for each of those
  int nodes;           ///< of branch and bound, at most, for each program
};

/// The options "groups", "saves", "peaks" and "nodes" of a policy.
StagePrograms programs_of(const std::string& owner, const Options& options);

/// Schedules of a graph with `first_planned`, each the one with the least time of reruns for two budgets. The budgets
/// of the peak are `peaks` numbers in equal steps, from the peak without reruns down to the least at which each node
/// has its inputs; those of the kept bytes are `saves` numbers, from all values, or the budget of the peak, down to 0.
/// No schedule is in the answer twice, and none of the budgets at which all values stay. Where a program ends at its
/// limit of nodes, its best schedule is taken, if it has one. A budget is not solved where the answer is known: where
/// looser ones have no schedule, or one that keeps the tighter.
std::vector<KeepSchedule> schedules_of(const KeepGraph& graph, const StagePrograms& programs);

/// Gives each stage an option for each of its schedules that no other option is at least as good as, in time, kept
/// bytes and both peaks. Stages whose graphs differ at most in times share the schedules of the first of them.
void add_options(const Trace& trace, TraceChain& chain, const StagePrograms& programs);

}  // namespace tidepool
