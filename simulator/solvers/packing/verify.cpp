#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "simulator/instance.hpp"
#include "simulator/planner.hpp"

namespace tidepool {

Bytes verified_height(const Instance& instance, const std::vector<Bytes>& offsets) {
  const auto refuse = [](const std::string& text) { throw std::logic_error{"layout: " + text}; };
  if (offsets.size() != instance.items.size())
    refuse(fmt::format("{} offsets for {} buffers", offsets.size(), instance.items.size()));
  Bytes height;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const Item& item = instance.items[i];
    if (offsets[i] < Bytes{} || offsets[i].count() % item.alignment.count() != 0 ||
        (item.fixed && *item.fixed != offsets[i]))
      refuse(fmt::format("buffer {} cannot lie at {} B", item.id, offsets[i].count()));
    height = std::max(height, offsets[i] + item.size);
  }
  std::map<Bytes, std::uint32_t> live;  // by offset, disjoint
  for (const PackingEvent& event : events_of(instance)) {
    const Bytes offset = offsets[event.item], size = instance.items[event.item].size;
    if (size == Bytes{}) continue;
    if (!event.begins) {
      live.erase(offset);
      continue;
    }
    const auto overlaps = [&](std::uint32_t other) {
      return offsets[other] < offset + size && offset < offsets[other] + instance.items[other].size;
    };
    const auto above = live.lower_bound(offset);
    for (const auto& near : {above, above == live.begin() ? live.end() : std::prev(above)})
      if (near != live.end() && overlaps(near->second))
        refuse(fmt::format("buffers {} and {} overlap at position {}", instance.items[near->second].id,
                           instance.items[event.item].id, event.position));
    live.emplace(offset, event.item);
  }
  return height;
}

}  // namespace tidepool
