#include "simulator/solvers/packing/orders.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tidepool {
namespace {

using Key = std::pair<Int128, Int128>;  // the greatest comes first

Key key_of(const Instance& instance, const Item& item, PackingOrder order) {
  const std::span<const Interval> lives = instance.lives(item);
  const std::int64_t size = item.size.count(), birth = lives.empty() ? 0 : lives.front().lower;
  std::int64_t life = 0;
  for (const Interval& interval : lives) life += interval.upper - interval.lower;
  switch (order) {
    case PackingOrder::kSize:
      return {size, -birth};
    case PackingOrder::kSizeLife:
      return {size, life};
    case PackingOrder::kArea:
      return {static_cast<Int128>(size) * life, 0};
    case PackingOrder::kLife:
      return {life, size};
    case PackingOrder::kBirth:
      break;
  }
  return {-birth, 0};
}

}  // namespace

std::string_view to_text(PackingOrder order) {
  constexpr std::array<std::string_view, kPackingOrders.size()> kNames{"size", "size-life", "area", "life", "birth"};
  return kNames[static_cast<std::size_t>(order)];
}

std::vector<std::uint32_t> in_order(const Instance& instance, PackingOrder order) {
  std::vector<Key> keys;
  keys.reserve(instance.items.size());
  for (const Item& item : instance.items) keys.push_back(key_of(instance, item, order));
  std::vector<std::uint32_t> sorted(instance.items.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] > keys[b]; });
  return sorted;
}

}  // namespace tidepool
