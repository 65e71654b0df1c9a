#include "policies/planning/search/mixed_selections.hpp"

#include <algorithm>
#include <cstddef>

namespace tidepool {

void try_mixed(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, Bytes largest) {
  const std::vector<double> prices = possible_prices(planning, costs, 200);
  std::size_t best = 0;
  const auto attempt = [&](std::size_t price, int slack, CopyOut copies) {
    if (trials.over() || price >= prices.size()) return;
    const Result before = trials.best_result();
    try_mixed_rounds(trials, planning, largest * slack / 10, 3, copies,
                     [&](const SlotLimits& limits) { return select_by_price(planning, costs, prices[price], limits); });
    if (better(trials.best_result(), before)) best = price;
  };
  constexpr std::size_t kCoarse = 12;
  const std::size_t step = std::max<std::size_t>(prices.size() / kCoarse, 1);
  for (std::size_t i = 0; i < prices.size(); i += step) attempt(i, 0, CopyOut::kWhenFree);
  for (std::size_t by = step; by > 0; by /= 2)
    for (const CopyOut copies : {CopyOut::kWhenFree, CopyOut::kAtRelease})
      for (const int slack : {0, 2}) {
        const std::size_t around = best;
        attempt(around, slack, copies);
        attempt(around + by, slack, copies);
        attempt(around - by, slack, copies);  // if around < by, the index is beyond all prices
      }
}

}  // namespace tidepool
