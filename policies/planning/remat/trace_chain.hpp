// The forward and backward phases of a trace as a chain of stages with options, and the actions that an order of the
// chain becomes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "policies/planning/remat/chain.hpp"
#include "policies/planning/remat/checkmate.hpp"
#include "policies/planning/remat/saved.hpp"
#include "simulator/options.hpp"
#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// What a stage keeps under an option of its chain, and how its backward step then runs.
struct KeptOption {
  std::vector<bool> keeps;       ///< by saved version of the stage; its output is kept
  std::vector<Action> backward;  ///< drops and runs during the backward step, sorted by `before`
};

/// The forward ops [first, behind) of one stage, and the versions that they leave to the backward phase.
struct TraceStage {
  std::uint32_t first = 0, behind = 0;
  std::uint32_t window = 0;       ///< first op of its backward step, which ends where that of the previous stage begins
  VersionId output = {};          ///< the version that the next stage reads; none for the last stage
  bool output_stays = true;       ///< its output is still there when its backward step begins
  std::vector<Saved> saved = {};  ///< saved versions that the stage makes, with its output
  std::vector<KeptOption> options = {};  ///< by option of the chain; the first keeps everything
};

struct TraceChain {
  std::vector<TraceStage> stages;
  Chain chain;  ///< the same stages with times and sizes
  /// By op: bytes while it runs, and before it, if its own stage keeps everything. Buffers from before the step and
  /// saved values of earlier stages are not counted.
  std::vector<Bytes> live, live_before;
};

/// Cuts the forward phase where a single version connects the ops before with the ops after (articulation points),
/// provided that an op after the forward phase uses that version too, so that it stays. Versions from before the step,
/// outputs of sources, and versions below a thousandth of all saved bytes (masks, statistics) connect stages freely and
/// are always kept.
/// Neighbours with the fewest saved bytes are merged until there are at most `most` stages. Times are sums of
/// durations, sizes are sums of bytes without addresses. Each stage has one option, which keeps everything.
/// O(uses + s^2), with s stages before merging.
TraceChain linearise(const Trace& trace, std::size_t most);

/// Time of the ops of a stage that make its `wanted` saved versions from its input.
Nanos time_again(const Trace& trace, const TraceStage& stage, const std::vector<bool>& wanted);

/// Drops and runs that make a step follow `sequence`, sorted by `before`. First runs of ops are the program's own. A
/// stage that runs again does so before the first backward op that needs it, op by op; each version is dropped after
/// the stage's last use of it. Versions that the sequence saves are not dropped. Versions that it does not name are
/// left to the run.
std::vector<Action> actions_of(const Trace& trace, const TraceChain& chain, const ChainSequence& sequence);

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
