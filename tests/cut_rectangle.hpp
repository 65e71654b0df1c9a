// Seeded dense instances whose least height is known: a rectangle of time and addresses, cut into pieces.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/instance.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::tests {

/// At least `items` items, and at most three more, that fill [0, height) at every position. So no layout is lower, and
/// the cut itself is a layout of that height. One cut in three makes five pieces, four of them around a middle one, so
/// that no straight cut separates them.
inline Instance cut_rectangle(std::uint64_t seed, std::size_t items, std::int64_t height) {
  struct Rectangle {
    std::int64_t left, right, low, high;
    std::int64_t width() const { return right - left; }
    std::int64_t size() const { return high - low; }
  };
  Random random{seed};
  const auto between = [&](std::int64_t low, std::int64_t high) {  // a random number strictly between the two
    return low + 1 + static_cast<std::int64_t>(random.below(static_cast<std::size_t>(high - low - 1)));
  };
  std::vector<Rectangle> cut{{0, 8 * static_cast<std::int64_t>(items), 0, height}};
  while (cut.size() < items) {
    // Chooses a large rectangle, which is then cut into two or five pieces.
    std::size_t at = random.below(cut.size());
    for (int k = 0; k < 3; ++k)
      if (const std::size_t other = random.below(cut.size());
          cut[other].width() * cut[other].size() > cut[at].width() * cut[at].size())
        at = other;
    const Rectangle whole = cut[at];
    if (whole.width() < 4 || whole.size() < 4) continue;
    if (random.chance(33)) {
      const std::int64_t left = between(whole.left, whole.right - 1), right = between(left, whole.right);
      const std::int64_t low = between(whole.low, whole.high - 1), high = between(low, whole.high);
      cut[at] = {whole.left, right, whole.low, low};
      cut.push_back({right, whole.right, whole.low, high});
      cut.push_back({left, whole.right, high, whole.high});
      cut.push_back({whole.left, left, low, whole.high});
      cut.push_back({left, right, low, high});
    } else if (random.chance(50)) {
      const std::int64_t middle = between(whole.left, whole.right);
      cut[at].right = middle;
      cut.push_back({middle, whole.right, whole.low, whole.high});
    } else {
      const std::int64_t middle = between(whole.low, whole.high);
      cut[at].high = middle;
      cut.push_back({whole.left, whole.right, middle, whole.high});
    }
  }
  for (std::size_t i = cut.size(); i > 1; --i) std::swap(cut[i - 1], cut[random.below(i)]);
  Instance instance;
  for (const Rectangle& piece : cut) instance.add(Bytes{piece.size()}, piece.left, piece.right);
  return instance;
}

}  // namespace tidepool::tests
