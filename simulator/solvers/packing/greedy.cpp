#include "simulator/solvers/packing/greedy.hpp"

#include <algorithm>

namespace tidepool {

std::vector<Bytes> place_in_order(const Instance& instance, std::span<const std::uint32_t> order, Fit fit) {
  return place_in_order(instance, Sections{instance}, order, fit);
}

std::vector<Bytes> place_in_order(const Instance& instance, const Sections& sections,
                                  std::span<const std::uint32_t> order, Fit fit) {
  Occupancy occupancy{sections.count()};
  std::vector<Bytes> offsets(instance.items.size());
  for (std::uint32_t i = 0; i < instance.items.size(); ++i) {
    const Item& item = instance.items[i];
    if (!item.fixed) continue;
    offsets[i] = *item.fixed;
    occupancy.take(sections.of(i), offsets[i].count(), item.size.count());
  }
  for (const std::uint32_t i : order) {
    const Item& item = instance.items[i];
    if (item.fixed || item.size == Bytes{}) continue;
    offsets[i] = Bytes{occupancy.find(sections.of(i), item.size.count(), item.alignment.count(), fit)};
    occupancy.take(sections.of(i), offsets[i].count(), item.size.count());
  }
  return offsets;
}

Bytes height_of(const Instance& instance, const std::vector<Bytes>& offsets) {
  Bytes height;
  for (std::size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + instance.items[i].size);
  return height;
}

}  // namespace tidepool
