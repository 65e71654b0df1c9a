#include "simulator/packing/orders.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace tidepool {

std::vector<std::uint32_t> in_order(const Instance& instance, PackingOrder order) {
  std::vector<std::array<double, 2>> keys;
  keys.reserve(instance.items.size());
  for (const Item& item : instance.items) {
    double life = 0;
    for (const Interval& interval : instance.lives(item)) life += static_cast<double>(interval.upper - interval.lower);
    const auto size = static_cast<double>(item.size.count());
    switch (order) {
      case PackingOrder::kSize:
        keys.push_back({size, 0});
        break;
      case PackingOrder::kSizeLife:
        keys.push_back({size, life});
        break;
      case PackingOrder::kArea:
        keys.push_back({size * life, size});
        break;
      case PackingOrder::kLife:
        keys.push_back({life, size});
        break;
      case PackingOrder::kBirth: {
        const auto lives = instance.lives(item);
        keys.push_back({lives.empty() ? 0 : -static_cast<double>(lives.front().lower), life});
        break;
      }
    }
  }
  std::vector<std::uint32_t> sorted(instance.items.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] > keys[b]; });
  return sorted;
}

}  // namespace tidepool
