#include "traces/import/blocks.hpp"

#include <iterator>
#include <set>

namespace tidepool {

Blocks::Blocks(TraceBuilder& builder, std::span<const LoggedBlock> events) : builder_{builder} {
  std::set<Place> heard_of;
  for (const LoggedBlock& event : events)
    if (heard_of.insert(place(event)).second && event.event != BlockEvent::kAlloc)
      live_[place(event)] = builder_.existing(event.block);
}

void Blocks::step(const LoggedBlock& event) {
  const auto found = live_.find(place(event));
  if (event.event == BlockEvent::kExisting) {
    if (found != live_.end()) return;
    ++builder_.losses().dropped_records;
  } else if (found != live_.end()) {
    if (event.event == BlockEvent::kAlloc) ++builder_.losses().dropped_records;
    builder_.free(found->second);
    live_.erase(found);
  } else if (event.event == BlockEvent::kFree) {
    ++builder_.losses().unmatched_frees;
  }
  if (event.event != BlockEvent::kFree) live_[place(event)] = builder_.alloc(event.block);
}

std::optional<BufferId> Blocks::find(std::uint32_t space, std::int64_t address) const {
  const auto behind = live_.upper_bound({space, address});
  if (behind == live_.begin()) return {};
  const auto& [place, id] = *std::prev(behind);
  const std::int64_t into = address - place.second;
  if (place.first != space || into >= builder_.so_far().buffers[id.index()].size.count()) return {};
  return id;
}

}  // namespace tidepool
