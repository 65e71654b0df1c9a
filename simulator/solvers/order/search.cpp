#include "simulator/solvers/order/search.hpp"

#include <algorithm>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/base/nearest.hpp"

namespace tidepool {

OpOrder lowest_peak_order(const Lifetimes& lifetimes, const Dependencies& dependencies, int most_moves) {
  constexpr std::size_t kSetsOfMove = 10;
  const std::size_t sets = kSetsOfMove * static_cast<std::size_t>(std::max(most_moves, 0));
  if (OpOrder exact = exact_order(lifetimes, dependencies, sets); exact.exact) return exact;
  OpOrder best = recorded_order(lifetimes);
  for (OpOrder order : {least_growth_order(lifetimes, dependencies), eager_order(lifetimes, dependencies),
                        latest_order(lifetimes, dependencies)})
    if (order.peak < best.peak) best = std::move(order);
  if (best.peak == peak_bound(lifetimes)) return best;
  return move_ops(std::move(best), lifetimes, dependencies, most_moves);
}

OpOrder order_by(const std::string& rule, const Lifetimes& lifetimes, const Dependencies& dependencies,
                 int most_moves) {
  if (rule == "lowest") return lowest_peak_order(lifetimes, dependencies, most_moves);
  if (rule == "recorded") return recorded_order(lifetimes);
  if (rule == "least") return least_growth_order(lifetimes, dependencies);
  if (rule == "eager") return eager_order(lifetimes, dependencies);
  if (rule == "latest") return latest_order(lifetimes, dependencies);
  throw InputError{unknown_name("rule", rule, {"eager", "latest", "least", "lowest", "recorded"})};
}

}  // namespace tidepool
