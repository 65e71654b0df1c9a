#include "traces/import/blocks.hpp"

#include <set>

namespace tidepool {

Blocks::Blocks(TraceBuilder& builder, std::span<const LoggedBlock> events) : builder_{builder} {
  std::set<Place> heard_of;
  for (const LoggedBlock& event : events)
    if (heard_of.insert(place(event)).second && event.frees) live_[place(event)] = builder_.existing(event.block);
}

void Blocks::step(const LoggedBlock& event) {
  const auto found = live_.find(place(event));
  if (found != live_.end()) {
    if (!event.frees) ++builder_.losses().dropped_records;
    builder_.free(found->second);
    live_.erase(found);
  } else if (event.frees) {
    ++builder_.losses().unmatched_frees;
  }
  if (!event.frees) live_[place(event)] = builder_.alloc(event.block);
}

}  // namespace tidepool
