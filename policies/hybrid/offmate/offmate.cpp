#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "policies/hybrid/offmate/offload_program.hpp"
#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/remat/paged_draft.hpp"
#include "policies/planning/remat/trace_chain.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// The steps in which a value is copied.
struct CopySteps {
  std::size_t begins;  ///< the first step after which some bytes of the value are copied
  std::size_t ends;    ///< the first step after which all bytes of the value are copied
};

/// @param sums    by step: bytes of the stage that are copied by the end of the step
/// @param before  bytes of the values that are copied before this one
/// @param bytes   bytes of those values and this one; bytes beyond the last sum do not count
CopySteps steps_of(const std::vector<Bytes>& sums, Bytes before, Bytes bytes) {
  const Bytes most = sums.back();
  const auto first_above = std::upper_bound(sums.begin(), sums.end(), std::min(before, most - 1_B));
  const auto first_whole = std::lower_bound(sums.begin(), sums.end(), std::min(bytes, most));
  return {static_cast<std::size_t>(first_above - sums.begin()), static_cast<std::size_t>(first_whole - sums.begin())};
}

/// Versions of a stage that an option keeps and that may leave. They are not the stage's output, and no later stage
/// reads them, neither in the forward phase nor in its backward step.
std::vector<Saved> movable_versions(const TraceChain& chain, std::size_t i, const KeptOption& option) {
  const TraceStage& stage = chain.stages[i];
  std::vector<Saved> movable;
  for (std::size_t s = 0; s < stage.saved.size(); ++s) {
    const Saved& saved = stage.saved[s];
    if (option.keeps[s] && saved.version != stage.output && saved.first_again >= stage.window &&
        saved.last_forward < stage.behind)
      movable.push_back(saved);
  }
  return movable;
}

/// Chooses versions with at least `bytes` in all; every version if all together have less. It goes from the largest to
/// the smallest and takes each version that does not exceed the bytes still missing. If bytes are missing at the end,
/// it adds the smallest version that was passed over.
std::vector<Saved> choose_versions(const Trace& trace, std::vector<Saved> movable, Bytes bytes) {
  std::stable_sort(movable.begin(), movable.end(),
                   [&](const Saved& a, const Saved& b) { return trace.size(a.version) > trace.size(b.version); });
  std::vector<Saved> chosen, others;
  for (const Saved& saved : movable) {
    const bool fits = trace.size(saved.version) <= bytes;
    (fits ? chosen : others).push_back(saved);
    if (fits) bytes -= trace.size(saved.version);
  }
  if (bytes > Bytes{} && !others.empty()) chosen.push_back(others.back());
  return chosen;
}

/// OffMate cuts the step into a chain of blocks and finds options for each block as Rockmate does (see add_options). An
/// integer program then chooses an option for each block, and how many bytes of its values are copied to the host and
/// back during which steps of other blocks (see plan_offload). Each block runs forward once; its option may rerun ops
/// in its backward step. Blocks' outputs stay.
///
/// Differences from OffMate: weights, gradients and optimizer states stay, and no optimizer step runs on the host. A
/// block's bytes are copied as whole values: the largest that fit the bytes that the program copies, then the smallest
/// of the others. Values are copied out in the order in which they are made, and back in the order in which they are
/// read. A swap-in is requested at the start of the step in which the program begins to copy the value, or of the step
/// in which it ends; the better of both plans is taken. The solver is CBC in the place of Gurobi or HiGHS. A program
/// ends after `nodes` nodes, and its best plan so far is taken. If there is no plan, the program's memory limit is
/// raised up to three times, each by a quarter of what is missing to keep everything; if there is still none, nothing
/// is planned. The plan limits sums of bytes, so add an online policy ("offmate+dtr").
///
/// Paper: Zhao, Eyraud-Dubois, Le Hellard, Gusak, Beaumont, "OFFMATE: full fine-tuning of LLMs on a single GPU by
/// re-materialization and offloading", 2024 (hal-04660745); code: topal-team/rockmate, rockmate/solvers/ilp.
class OffMate final : public PagedPolicy {
 public:
  explicit OffMate(const Options& options)
      : stages_{count_of("offmate", options, "stages", 100)}, programs_{programs_of("offmate", options)} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    draft_ = {};
    TraceChain chain = linearise(trace, stages_);
    Bytes room = spec.capacity;
    for (const Buffer& buffer : trace.buffers())
      if (buffer.born_before) room -= buffer.size;
    const Bytes most = cost_of(chain.chain, save_all(chain.chain))->peak;
    if (most <= room) return {};
    add_options(trace, chain, programs_);
    const auto plan = plan_within(trace, spec, chain, std::max(room, Bytes{}), most);
    if (!plan) return {};
    return follow_better(trace, spec, [&](bool early) { return actions_of_plan(trace, chain, *plan, early); });
  }

 private:
  std::optional<std::vector<StageOffload>> plan_within(const Trace& trace, const RunSpec& spec, const TraceChain& chain,
                                                       Bytes room, Bytes most) const {
    constexpr int kSteps = 4;
    OffloadProblem problem{chain.chain, {}, spec.machine.d2h, spec.machine.h2d, room};
    for (std::size_t i = 0; i < chain.stages.size(); ++i) {
      problem.movable.emplace_back();
      for (const KeptOption& option : chain.stages[i].options) {
        Bytes sum;
        for (const Saved& saved : movable_versions(chain, i, option)) sum += trace.size(saved.version);
        problem.movable.back().push_back(sum);
      }
    }
    for (int step = 0; step < kSteps; ++step) {
      problem.room = room + (most - room) / kSteps * step;
      if (auto plan = plan_offload(problem, programs_.nodes)) return plan;
    }
    return {};
  }

  /// @param early  swap-ins are requested in the step in which the plan begins to copy a value; otherwise in the step
  ///               in which its copy ends
  static PagedActions actions_of_plan(const Trace& trace, const TraceChain& chain,
                                      const std::vector<StageOffload>& plan, bool early) {
    const std::size_t size = chain.stages.size();
    const auto first_op = [&](std::size_t step) {
      return step < size ? chain.stages[step].first : chain.stages[2 * size - 1 - step].window;
    };
    CopyDraft copies{trace};
    ChainSequence sequence;
    for (std::uint32_t i = 0; i < size; ++i) {
      sequence.push_back({ChainVerb::kSave, i, plan[i].option});
      std::vector<Saved> chosen = choose_versions(
          trace, movable_versions(chain, i, chain.stages[i].options[plan[i].option]), plan[i].out.back());
      const auto in_order_of = [&](auto key) {
        std::stable_sort(chosen.begin(), chosen.end(), [&](const Saved& a, const Saved& b) { return key(a) < key(b); });
      };
      const auto each_copied = [&](const std::vector<Bytes>& sums, auto copy) {
        Bytes before;
        for (const Saved& saved : chosen) {
          const Bytes bytes = before + trace.size(saved.version);
          copy(saved.version, steps_of(sums, before, bytes));
          before = bytes;
        }
      };
      in_order_of([](const Saved& saved) { return saved.made; });
      each_copied(plan[i].out, [&](VersionId v, CopySteps steps) {
        copies.release(steps.begins == i ? chain.stages[i].behind : first_op(steps.begins), v);
      });
      in_order_of([](const Saved& saved) { return saved.first_again; });
      each_copied(plan[i].in, [&](VersionId v, CopySteps steps) {
        copies.copy_back(first_op(early ? steps.begins : steps.ends), v);
      });
    }
    for (auto i = static_cast<std::uint32_t>(size); i-- > 0;) sequence.push_back({ChainVerb::kBackward, i, 0});
    return {copies.take(), actions_of(trace, chain, sequence)};
  }

  std::size_t stages_;
  StagePrograms programs_;
};

const RegisterPolicy kOffmate{
    {.name = "offmate",
     .kind = PolicyKind::kHybrid,
     .summary = "chooses by integer programs what each block of a chain keeps, copies to the host or recomputes",
     .paper = "OffMate: Zhao et al., 2024 (hal-04660745)",
     .options = {{"groups", "6", "number", "most groups of a block's values"},
                 {"saves", "4", "number", "budgets of a block for the bytes that it keeps"},
                 {"peaks", "2", "number", "budgets of a block for its backward step"},
                 {"nodes", "200", "number", "most nodes of branch and bound for each program"},
                 {"stages", "16", "number", "most blocks; neighbours with few saved bytes are merged"}},
     .make = [](const Options& options) { return std::make_unique<OffMate>(options); }}};

}  // namespace
}  // namespace tidepool
