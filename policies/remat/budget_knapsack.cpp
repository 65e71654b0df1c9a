#include <algorithm>
#include <memory>
#include <string>

#include "policies/planning/remat/draft.hpp"
#include "policies/planning/remat/knapsack.hpp"
#include "policies/planning/remat/saved.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Keeps the outputs of the forward phase whose producers take most time, and drops the others after their last use in
/// the forward phase. Only outputs that the backward phase reads count; the kept ones have at most a part `budget` of
/// all their bytes:
///   max sum of r_i x_i  subject to  sum of m_i x_i <= budget * sum of m_i,  x_i in {0, 1}
/// r_i is the time of the op that makes i, m_i its bytes. This does not limit the peak: a recomputation also needs the
/// outputs before it, and outputs that come back stay until they are used. The capacity has no influence. The time to
/// plan is the solver's. Source: PyTorch 2.4, torch._functorch.config.activation_memory_budget and its solvers (greedy,
/// ilp, dp), where r_i is the op's own time, too. Differences: views and cheap ops are treated like all others, and dp
/// rounds sizes up, not to the nearest part.
class BudgetKnapsack final : public DraftPolicy {
 public:
  BudgetKnapsack(double budget, std::string solver) : budget_{budget}, solver_{std::move(solver)} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec&) override {
    const std::vector<Saved> saved = saved_versions(trace, first_backward_op(trace));
    std::vector<KnapsackItem> items;
    Bytes total;
    for (const Saved& each : saved) {
      items.push_back({trace.size(each.version), trace.op(OpId{each.made}).duration});
      total += items.back().size;
    }
    const Bytes limit{static_cast<std::int64_t>(budget_ * static_cast<double>(total.count()))};
    const std::vector<bool> kept = solver_ == "greedy" ? knapsack_greedily(items, limit)
                                   : solver_ == "dp"   ? knapsack_by_table(items, limit)
                                                       : knapsack_exactly(items, limit);
    std::vector<Action> drops;
    for (std::size_t i = 0; i < saved.size(); ++i)
      if (!kept[i] && saved[i].last_forward + 1 < trace.ops().size())
        drops.push_back({.verb = Verb::kDrop,
                         .before = OpId{std::size_t{saved[i].last_forward} + 1},
                         .subject = saved[i].version.value()});
    std::stable_sort(drops.begin(), drops.end(), [](const Action& a, const Action& b) { return a.before < b.before; });
    draft_ = Draft{std::move(drops)};
    return {};
  }

 private:
  double budget_;
  std::string solver_;
};

const RegisterPolicy kBudgetKnapsack{
    {.name = "budget-knapsack",
     .kind = PolicyKind::kRemat,
     .summary = "keeps a share of the saved bytes, those that take longest to make; does not limit the peak",
     .paper = "PyTorch 2.4, activation_memory_budget",
     .options = {{"budget", "0.5", "number", "share of the saved bytes that is kept, 0 to 1"},
                 {"solver", "dp", "greedy|dp|ilp", "by time per byte, by a table of 10,000 sizes, or exactly"}},
     .make = [](const Options& options) {
       return std::make_unique<BudgetKnapsack>(number_of("budget-knapsack", options, "budget", 1),
                                               options.word("solver"));
     }}};

}  // namespace
}  // namespace tidepool
