#include "simulator/solvers/packing/heuristic.hpp"

#include "simulator/solvers/packing/greedy.hpp"

namespace tidepool {

std::int64_t span_of(const Instance& instance, const Item& item) {
  const std::span<const Interval> lives = instance.lives(item);
  return lives.empty() ? 0 : lives.back().upper - lives.front().lower;
}

Layout judged(const Instance& instance, std::vector<Bytes> offsets, const PackingLimits& limits) {
  Layout layout;
  layout.height = height_of(instance, offsets);
  layout.offsets = std::move(offsets);
  layout.lower_bound = load_of(instance);
  layout.proof = "load";
  if (layout.lower_bound > limits.capacity)
    layout.outcome = Outcome::kInfeasible;
  else if (layout.height > limits.capacity)
    layout.outcome = Outcome::kOutOfMemory;
  return layout;
}

BestLayout::BestLayout(const Instance& instance, const PackingLimits& limits)
    : instance_{instance}, limits_{limits}, end_{limits}, load_{load_of(instance)} {}

void BestLayout::offer(std::vector<Bytes> offsets) {
  const Bytes height = height_of(instance_, offsets);
  if (height_ && *height_ <= height) return;
  height_ = height;
  offsets_ = std::move(offsets);
}

}  // namespace tidepool
