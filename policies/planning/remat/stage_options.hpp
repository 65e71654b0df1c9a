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
  std::size_t groups;  ///< most groups of its values; see condense_stage()
  int saves;           ///< number of budgets of the bytes that the stage keeps, at least 2
  int peaks;           ///< number of budgets of the bytes that its backward step uses; each goes with each of `saves`
  int nodes;           ///< nodes of branch and bound, at most, for each program
};

/// The options "groups", "saves", "peaks" and "nodes" of a policy.
StagePrograms programs_of(const std::string& owner, const Options& options);

/// Schedules of a graph with `first_planned`, each with the least time of reruns for two budgets. The budgets of the
/// peak are `peaks` numbers in equal steps, from the peak without reruns down to the least at which each node has its
/// inputs. The budgets of the kept bytes are `saves` numbers in equal steps down to 0, from all values or the budget of
/// the peak, whichever is less. The schedule that keeps all values is left out, and no schedule occurs twice. A program
/// that ends at its limit of nodes gives its best schedule, if it has one. Budgets are skipped if the answer is known:
/// if looser budgets have no schedule, or one that fits these budgets too.
std::vector<KeepSchedule> schedules_of(const KeepGraph& graph, const StagePrograms& programs);

/// Gives each stage an option for each of its schedules, unless an option is at least as good in time, kept bytes and
/// both peaks. Stages whose graphs differ only in times share the schedules of the first of them.
void add_options(const Trace& trace, TraceChain& chain, const StagePrograms& programs);

}  // namespace tidepool
