// Seeded random instances of dynamic storage allocation, and a check that is independent of the planners.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "simulator/planner.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::tests {

/// What some of the items have.
struct InstanceKind {
  bool gaps = false;        ///< two intervals of life, with a gap of one position
  bool alignments = false;  ///< an alignment above 1 B, up to 16 B
  bool fixed = false;       ///< a fixed offset
};

/// `items` buffers of at most 64 B each that live during some of 2 * `items` positions; one in eight has no bytes.
inline Instance random_instance(std::uint64_t seed, std::size_t items, InstanceKind kind) {
  Random random{seed};
  Instance instance;
  const std::size_t end = 2 * items + 1;
  for (std::size_t i = 0; i < items; ++i) {
    const auto size = static_cast<std::int64_t>(random.chance(12) ? 0 : 1 + random.below(64));
    const std::size_t lower = random.below(end - 1);
    const std::size_t upper = lower + 1 + random.below(std::min<std::size_t>(end - 1 - lower, 1 + items));
    std::vector<Interval> lives{{static_cast<std::int64_t>(lower), static_cast<std::int64_t>(upper)}};
    if (kind.gaps && upper - lower >= 3 && random.chance(50)) {
      const auto middle = static_cast<std::int64_t>(lower + 1 + random.below(upper - lower - 2));
      lives = {{lives[0].lower, middle}, {middle + 1, lives[0].upper}};
    }
    Item& item = instance.add(Bytes{size}, lives);
    if (kind.alignments) item.alignment = Bytes{std::int64_t{1} << random.below(5)};
    // Fixed offsets differ, so that they cannot collide.
    if (kind.fixed && random.chance(15)) item.fixed = Bytes{static_cast<std::int64_t>(i) * 64};
  }
  return instance;
}

/// The first fault of a layout, "" if there is none: checks every pair of items and every pair of their intervals.
inline std::string fault_of(const Instance& instance, const std::vector<Bytes>& offsets) {
  if (offsets.size() != instance.items.size()) return "offsets are missing";
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const Item& a = instance.items[i];
    if (offsets[i] < Bytes{} || offsets[i].count() % a.alignment.count() != 0) return "misaligned";
    if (a.fixed && *a.fixed != offsets[i]) return "not where it is fixed";
    for (std::size_t j = 0; j < i; ++j) {
      const Item& b = instance.items[j];
      if (a.size == Bytes{} || b.size == Bytes{}) continue;
      if (offsets[i] >= offsets[j] + b.size || offsets[j] >= offsets[i] + a.size) continue;
      for (const Interval& one : instance.lives(a))
        for (const Interval& other : instance.lives(b))
          if (one.lower < other.upper && other.lower < one.upper) return "overlap";
    }
  }
  return "";
}

}  // namespace tidepool::tests
