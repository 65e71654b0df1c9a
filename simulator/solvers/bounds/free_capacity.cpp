#include "simulator/solvers/bounds/free_capacity.hpp"

#include <optional>

namespace tidepool {

Bytes least_free_capacity(BoundQuery query) {
  query.capacity = kNoLimit;
  const std::optional<Bound> unlimited = best_bound(query);
  const Nanos free = unlimited ? unlimited->makespan : Nanos{};
  Bytes costs, costs_nothing = ideal_peak(query.trace, query.assume);
  for (int step = 0; step < 20 && costs_nothing - costs > Bytes{1}; ++step) {
    query.capacity = costs + (costs_nothing - costs) / 2;
    const std::optional<Bound> bound = best_bound(query);
    const bool lost = bound && (!bound->feasible || bound->makespan > free);
    (lost ? costs : costs_nothing) = query.capacity;
  }
  return costs + Bytes{1};
}

}  // namespace tidepool
