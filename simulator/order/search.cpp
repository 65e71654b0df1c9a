#include "simulator/order/search.hpp"

#include <utility>

#include "simulator/order/exact_order.hpp"
#include "simulator/order/list_scheduling.hpp"
#include "simulator/order/moves.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kMostSets = 200'000;  // the exact search visits no more sets of ops

}  // namespace

OpOrder lowest_peak_order(const Lifetimes& lifetimes, const Dependencies& dependencies) {
  if (OpOrder exact = exact_order(lifetimes, dependencies, kMostSets); exact.exact) return exact;
  OpOrder best = recorded_order(lifetimes);
  for (OpOrder order : {least_growth_order(lifetimes, dependencies), eager_order(lifetimes, dependencies),
                        latest_order(lifetimes, dependencies)})
    if (order.peak < best.peak) best = std::move(order);
  if (best.peak == peak_bound(lifetimes)) return best;
  return move_ops(std::move(best), lifetimes, dependencies);
}

}  // namespace tidepool
