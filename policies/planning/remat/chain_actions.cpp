// The actions of a chain's order in the trace: drops of versions and reruns of ops.
#include <algorithm>
#include <utility>

#include "policies/planning/remat/trace_chain.hpp"

namespace tidepool {
namespace {

/// Turns steps into actions.
class Scheduler {
 public:
  Scheduler(const Trace& trace, const TraceChain& chain)
      : trace_{trace},
        stages_{chain.stages},
        left_{stages_.size()},
        ran_(stages_.size()),
        saved_(stages_.size()),
        option_(stages_.size()),
        needed_(trace.ops().size()),
        is_saved_(trace.versions().size()),
        last_use_(trace.versions().size()) {}

  void apply(const ChainStep& step) {
    const std::size_t i = step.stage;
    if (step.verb == ChainVerb::kBackward) {
      --left_;
      // Stage i - 1 must run again before its backward step. This takes least memory without its earlier output; if ops
      // still need the output, it is made again.
      if (i > 0 && !saved_[i - 1]) drop(stages_[i - 1].window, stages_[i - 1].output);
      const std::vector<Action>& backward = stages_[i].options[option_[i]].backward;
      actions_.insert(actions_.end(), backward.begin(), backward.end());
      return;
    }
    saved_[i] = step.verb == ChainVerb::kSave;
    option_[i] = saved_[i] ? step.option : 0;
    if (ran_[i])
      run_again(i, step.verb);
    else
      run_first(i, step.verb);
    ran_[i] = true;
  }

  std::vector<Action> take() {
    std::stable_sort(actions_.begin(), actions_.end(),
                     [](const Action& a, const Action& b) { return a.before < b.before; });
    return std::move(actions_);
  }

 private:
  void add(Verb verb, std::uint32_t before, std::uint32_t subject) {
    if (before < trace_.ops().size()) actions_.push_back({.verb = verb, .before = OpId{before}, .subject = subject});
  }
  void drop(std::uint32_t before, VersionId v) { add(Verb::kDrop, before, v.value()); }

  /// Whether the stage keeps its saved version `s` now.
  bool keeps(std::size_t i, std::size_t s) const {
    const TraceStage& stage = stages_[i];
    return saved_[i] ? stage.options[option_[i]].keeps[s] : stage.saved[s].version == stage.output;
  }

  void run_first(std::size_t i, ChainVerb verb) {
    const TraceStage& stage = stages_[i];
    for (std::size_t s = 0; s < stage.saved.size(); ++s)
      if (!keeps(i, s)) drop(stage.saved[s].last_forward + 1, stage.saved[s].version);
    if (verb == ChainVerb::kSweep && i > 0) drop(stage.behind, stages_[i - 1].output);
  }

  void run_again(std::size_t i, ChainVerb verb) {
    const TraceStage& stage = stages_[i];
    const std::uint32_t now = stages_[left_ - 1].window;
    find_needed(i);
    std::vector<Saved> open;  // versions that were made and are dropped after their last use
    std::size_t next = 0;
    for (std::uint32_t op = stage.first; op < stage.behind; ++op) {
      bool runs = false;
      for (; next < stage.saved.size() && stage.saved[next].made == op; ++next) {
        if (!needed_[op]) continue;
        runs = true;
        if (!keeps(i, next)) open.push_back(stage.saved[next]);
      }
      if (!runs) continue;  // other ops run when a saved value needs them
      add(Verb::kRun, now, op);
      std::erase_if(open, [&](const Saved& saved) {
        if (last_use_[saved.version.index()] > op) return false;
        drop(now, saved.version);
        return true;
      });
    }
    for (const Saved& saved : open) drop(now, saved.version);
    if (verb == ChainVerb::kSweep && i > 0) drop(now, stages_[i - 1].output);
  }

  /// Whether a rerun of the stage now makes its saved version `s` for later: if the stage keeps it, and if it is not an
  /// output that the program has freed.
  bool wants(std::size_t i, std::size_t s) const {
    const TraceStage& stage = stages_[i];
    return keeps(i, s) && (stage.saved[s].version != stage.output || stage.output_stays || i + 1 < left_);
  }

  /// Finds the ops that make the versions that a rerun of a stage wants, and the ops of the stage that these ops need.
  /// Also finds the last use of each version by these ops.
  void find_needed(std::size_t i) {
    const TraceStage& stage = stages_[i];
    for (std::uint32_t op = stage.first; op < stage.behind; ++op) {
      needed_[op] = false;
      for (const VersionId made : trace_.made(OpId{op})) last_use_[made.index()] = 0, is_saved_[made.index()] = false;
    }
    for (std::size_t s = 0; s < stage.saved.size(); ++s) {
      is_saved_[stage.saved[s].version.index()] = true;
      if (wants(i, s)) needed_[stage.saved[s].made] = true;
    }
    for (std::uint32_t op = stage.behind; op-- > stage.first;) {
      if (!needed_[op]) continue;
      std::uint32_t runs = 0;
      for (const VersionId made : trace_.made(OpId{op}))
        runs = std::max(runs, is_saved_[made.index()] ? op : last_use_[made.index()]);
      for (const Use& use : trace_.uses(OpId{op})) {
        if (!use.in.valid()) continue;
        const VersionId root = trace_.root(use.in);
        const OpId producer = trace_.version(root).producer;
        if (!producer.valid() || producer.value() < stage.first) continue;
        needed_[producer.index()] = true;
        last_use_[root.index()] = std::max(last_use_[root.index()], runs);
      }
    }
  }

  const Trace& trace_;
  const std::vector<TraceStage>& stages_;
  std::size_t left_;                     // stages whose backward step has not run
  std::vector<bool> ran_, saved_;        // by stage
  std::vector<std::uint32_t> option_;    // by stage, if it is saved
  std::vector<bool> needed_;             // by op of the current stage
  std::vector<bool> is_saved_;           // by version of the current stage
  std::vector<std::uint32_t> last_use_;  // by version of the current stage: op
  std::vector<Action> actions_;
};

}  // namespace

std::vector<Action> actions_of(const Trace& trace, const TraceChain& chain, const ChainSequence& sequence) {
  Scheduler scheduler{trace, chain};
  for (const ChainStep& step : sequence) scheduler.apply(step);
  return scheduler.take();
}

}  // namespace tidepool
