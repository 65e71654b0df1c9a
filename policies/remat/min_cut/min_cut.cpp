#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "policies/planning/remat/draft.hpp"
#include "policies/planning/remat/saved.hpp"
#include "policies/remat/min_cut/partition.hpp"
#include "simulator/registry.hpp"
#include "traces/base/error.hpp"

namespace tidepool {
namespace {

/// A minimum cut of the step's graph chooses the outputs of the forward phase to keep for the backward phase; the
/// others are dropped after their last use in the forward phase. Cheap operators run again, expensive ones only if
/// `budget` requires it (see Partitioner). budget=auto takes the largest of 1, 0.95, ... 0 whose plan fits the capacity
/// by a sum of bytes; in this sum, a dropped output is back when it is first read again. If none fits, it takes the one
/// with the least peak. The graph is that of the trace (see joint_graph): rules about views and operators do not apply
/// if the trace leaves out views or its names are not PyTorch's operators. Differences from PyTorch: nothing is fused,
/// and dropped outputs come back op by op. Plans with a few maximum flows for each budget tried.
/// Source: PyTorch 2.15, torch._functorch.partitioners.min_cut_rematerialization_partition and
/// torch._functorch.config.activation_memory_budget.
class MinCut final : public DraftPolicy {
 public:
  /// @param budget  none: the capacity decides
  MinCut(std::optional<double> budget, KnapsackSolver solver) : budget_{budget}, solver_{solver} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    TraceGraph made = joint_graph(trace);
    const std::vector<VersionId> values = std::move(made.values);
    const std::vector<bool> results = results_of(trace, made.graph, values);
    const Partitioner partitioner{std::move(made.graph)};
    const std::vector<Saved> saved = saved_versions(trace, first_backward_op(trace));
    std::optional<Choice> best;
    constexpr int kSteps = 20;
    for (int step = kSteps; step >= 0; --step) {
      const double budget = budget_.value_or(static_cast<double>(step) / kSteps);
      Choice next = choice_of(trace, saved, values, results, partitioner.choose(budget, solver_));
      const bool fits = next.peak <= spec.capacity;
      if (!best || next.peak < best->peak) best = std::move(next);
      if (fits || budget_) break;
    }
    draft_ = Draft{std::move(best->drops)};
    return {};
  }

 private:
  struct Choice {
    std::vector<Action> drops;
    Bytes peak;
  };

  /// By version: whether the forward phase hands it to the program, which holds it as long as it wants (the loss).
  static std::vector<bool> results_of(const Trace& trace, const JointGraph& graph,
                                      const std::vector<VersionId>& values) {
    std::vector<bool> results(trace.versions().size());
    for (std::size_t node = 0; node < graph.size(); ++node)
      if (graph[node].handed_on && values[node].valid()) results[trace.root(values[node]).index()] = true;
    return results;
  }

  static Choice choice_of(const Trace& trace, const std::vector<Saved>& saved, const std::vector<VersionId>& values,
                          const std::vector<bool>& results, const Partition& partition) {
    std::vector<bool> kept = results;
    for (const std::uint32_t node : partition.kept) kept[trace.root(values[node]).index()] = true;
    Choice choice;
    std::vector<Bytes> live = live_bytes(trace), change(live.size() + 1);
    for (const Saved& each : saved) {
      const std::uint32_t gone = each.last_forward + 1;
      if (kept[each.version.index()] || gone >= each.first_again || gone >= live.size()) continue;
      choice.drops.push_back({.verb = Verb::kDrop, .before = OpId{gone}, .subject = each.version.value()});
      change[gone] -= trace.size(each.version);
      change[each.first_again] += trace.size(each.version);
    }
    Bytes away;
    for (std::size_t i = 0; i < live.size(); ++i) {
      away += change[i];
      choice.peak = std::max(choice.peak, live[i] + away);
    }
    std::stable_sort(choice.drops.begin(), choice.drops.end(),
                     [](const Action& a, const Action& b) { return a.before < b.before; });
    return choice;
  }

  std::optional<double> budget_;
  KnapsackSolver solver_;
};

std::optional<double> budget_of(const Options& options) {
  const std::string& word = options.word("budget");
  if (word == "auto") return {};
  const Options number{"min-cut", {{"budget", "1", "number", ""}}, {{"budget", word}}};
  const double budget = number.number("budget");
  if (!(budget >= 0 && budget <= 1))
    throw InputError{fmt::format("min-cut: option 'budget' is '{}'; expected 0 to 1, or auto", word)};
  return budget;
}

KnapsackSolver solver_of(const std::string& word) {
  if (word == "greedy") return KnapsackSolver::kGreedy;
  return word == "ilp" ? KnapsackSolver::kExact : KnapsackSolver::kTable;
}

const RegisterPolicy kMinCut{
    {.name = "min-cut",
     .kind = PolicyKind::kRemat,
     .summary =
         "keeps a minimum cut between forward and backward; a memory budget decides which expensive ops run again",
     .paper = "PyTorch 2.15, min_cut_rematerialization_partition",
     .options = {{"budget", "auto", "text",
                  "share of the bytes that the cut keeps beyond the inputs, 0 to 1; auto: by the capacity"},
                 {"solver", "dp", "dp|greedy|ilp", "of the knapsack: by a table, by time per byte, or exactly"}},
     .make = [](const Options& options) {
       return std::make_unique<MinCut>(budget_of(options), solver_of(options.word("solver")));
     }}};

}  // namespace
}  // namespace tidepool
