// The allocs and frees of one device of a trace, in program order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// A buffer gets its place or loses it.
struct BufferEvent {
  std::uint32_t buffer = 0;
  bool begins = false;
};

inline std::vector<BufferEvent> buffer_events(const Trace& trace, std::uint16_t device) {
  std::vector<BufferEvent> events;
  for (const Event& event : trace.events())
    if ((event.kind == EventKind::kAlloc || event.kind == EventKind::kFree) &&
        trace.buffers()[event.id].device == device)
      events.push_back({event.id, event.kind == EventKind::kAlloc});
  return events;
}

/// One more than the number of the last device that has a buffer; 1 if there are none.
inline std::uint32_t device_count(const Trace& trace) {
  std::uint16_t last = 0;
  for (const Buffer& buffer : trace.buffers()) last = std::max(last, buffer.device);
  return std::uint32_t{last} + 1;
}

}  // namespace tidepool
