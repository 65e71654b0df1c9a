#include "policies/hybrid/tide/order_candidates.hpp"

#include <algorithm>
#include <utility>

#include "policies/planning/gaps/gap_draft.hpp"
#include "simulator/solvers/order/search.hpp"
#include "traces/step/dependencies.hpp"

namespace tidepool {

std::vector<std::shared_ptr<const OrderedStep>> order_candidates(const Trace& trace, const RunSpec& spec, int moves) {
  if (!spec.assume.name.empty() || !can_be_reordered(trace)) return {};
  const Trace divided = split_foreach(trace);
  const Lifetimes lifetimes{divided};
  const Dependencies dependencies = dependencies_of(divided);
  std::vector<std::shared_ptr<const OrderedStep>> steps;
  for (const char* rule : {"eager", "lowest", "least", "latest"}) {
    OpOrder order = order_by(rule, lifetimes, dependencies, moves);
    const auto same = [&](const auto& step) { return step->order().ops == order.ops; };
    if (std::any_of(steps.begin(), steps.end(), same)) continue;
    steps.push_back(std::make_shared<OrderedStep>(trace, step_order(std::move(order), true)));
  }
  return steps;
}

std::shared_ptr<const OrderedStep> best_order(std::vector<std::shared_ptr<const OrderedStep>> steps,
                                              const std::function<Result(const Trace&)>& look,
                                              const std::function<bool(const Trace&)>& improves) {
  constexpr std::size_t kAsked = 2;
  std::vector<std::pair<Result, std::shared_ptr<const OrderedStep>>> looks;
  for (auto& step : steps) {
    Result result = look(step->trace());
    looks.emplace_back(std::move(result), std::move(step));
  }
  std::stable_sort(looks.begin(), looks.end(), [](auto& a, auto& b) { return better(a.first, b.first); });
  std::shared_ptr<const OrderedStep> best;
  for (std::size_t i = 0; i < std::min(looks.size(), kAsked); ++i)
    if (improves(looks[i].second->trace())) best = looks[i].second;
  return best;
}

}  // namespace tidepool
