// Orders of items and the choice of the best layout, for planners that prove nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/planner.hpp"
#include "simulator/solvers/packing/end_of_time.hpp"

namespace tidepool {

/// All items, sorted by `less(const Item&, const Item&)`; equal items keep their order.
template <class Less>
std::vector<std::uint32_t> order_items(const Instance& instance, const Less& less) {
  std::vector<std::uint32_t> order(instance.items.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return less(instance.items[a], instance.items[b]); });
  return order;
}

/// Number of positions from an item's first to its last one, gaps included.
std::int64_t span_of(const Instance& instance, const Item& item);

/// The layout with these offsets. Its lower bound is the load. Its outcome says whether it fits the capacity.
Layout judged(const Instance& instance, std::vector<Bytes> offsets, const PackingLimits& limits);

/// The lowest of the layouts that offer() receives, the first among equals.
class BestLayout {
 public:
  BestLayout(const Instance& instance, const PackingLimits& limits);

  void offer(std::vector<Bytes> offsets);
  /// Whether to stop: there is a layout, and either it reaches the load, so that none is lower, or the time is over.
  bool done() const { return height_ && (*height_ == load_ || end_.reached()); }
  /// The lowest layout. Call after offer().
  Layout take() { return judged(instance_, std::move(offsets_), limits_); }

 private:
  const Instance& instance_;
  const PackingLimits& limits_;
  EndOfTime end_;
  Bytes load_;
  std::optional<Bytes> height_;
  std::vector<Bytes> offsets_;
};

}  // namespace tidepool
