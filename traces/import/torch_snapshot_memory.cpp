// The memory that a snapshot records of a device: the most bytes reserved, and the request that failed.
#include <algorithm>
#include <set>
#include <span>
#include <tuple>

#include "traces/import/torch_snapshot.hpp"

namespace tidepool {
namespace {

using Action = SnapshotAction;

/// The change of reserved bytes by an event.
Bytes reserved_by(const SnapshotEvent& event) {
  if (event.action == Action::kSegmentAlloc || event.action == Action::kSegmentMap) return event.size;
  if (event.action == Action::kSegmentFree || event.action == Action::kSegmentUnmap) return -event.size;
  return {};
}

bool failed(const SnapshotEvent& event) { return event.action == Action::kOom; }

bool is_of_memory(const SnapshotEvent& event) {
  return event.action != Action::kSnapshot && event.action != Action::kOther;
}

/// The events of a device; empty if it has no history.
std::span<const SnapshotEvent> events_of(const TorchSnapshot& snapshot, std::size_t device) {
  if (device >= snapshot.device_traces.size()) return {};
  return snapshot.device_traces[device];
}

/// The change of allocated bytes by an event.
Bytes allocated_by(const SnapshotEvent& event) {
  if (event.action == Action::kAlloc) return event.size;
  return event.action == Action::kFreeCompleted ? -event.size : Bytes{};
}

Bytes allocated_at_end(const TorchSnapshot& snapshot, std::size_t device) {
  Bytes allocated;
  for (const SnapshotSegment& segment : snapshot.segments)
    for (const SnapshotBlock& block : segment.blocks)
      if (static_cast<std::size_t>(segment.device) == device && block.state != BlockState::kInactive)
        allocated += block.requested < Bytes{} ? block.size : block.requested;
  return allocated;
}

Bytes reserved_at_end(const TorchSnapshot& snapshot, std::size_t device) {
  Bytes reserved;
  for (const SnapshotSegment& segment : snapshot.segments)
    if (static_cast<std::size_t>(segment.device) == device) reserved += segment.size;
  return reserved;
}

}  // namespace

std::vector<std::size_t> devices_with_memory(const TorchSnapshot& snapshot) {
  std::set<std::size_t> devices;
  for (const SnapshotSegment& segment : snapshot.segments) devices.insert(static_cast<std::size_t>(segment.device));
  for (std::size_t device = 0; device < snapshot.device_traces.size(); ++device)
    if (std::ranges::any_of(snapshot.device_traces[device], is_of_memory)) devices.insert(device);
  return {devices.begin(), devices.end()};
}

RecordedMemory recorded_memory(const TorchSnapshot& snapshot) {
  const auto rank = [&](std::size_t device) {
    const auto events = events_of(snapshot, device);
    return std::tuple{std::ranges::any_of(events, failed), std::ranges::count_if(events, is_of_memory),
                      reserved_at_end(snapshot, device)};
  };
  const std::vector<std::size_t> devices = devices_with_memory(snapshot);
  return recorded_memory(snapshot, devices.empty() ? 0 : *std::ranges::max_element(devices, {}, rank));
}

RecordedMemory recorded_memory(const TorchSnapshot& snapshot, std::size_t device) {
  RecordedMemory memory{.device = device, .most_reserved = {}, .capacity = {}, .failed_request = {}};
  Bytes reserved = memory.most_reserved = reserved_at_end(snapshot, device);
  const auto events = events_of(snapshot, device);
  Bytes allocated = allocated_at_end(snapshot, device);
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (failed(*event)) {
      memory.capacity = reserved + Bytes{std::max<std::int64_t>(event->address, 0)};
      memory.failed_request = event->size;
    }
    reserved -= reserved_by(*event);
    allocated -= allocated_by(*event);
    memory.most_reserved = std::max({memory.most_reserved, reserved, allocated});
    if (allocated > reserved) memory.lacks_segments = true;
  }
  return memory;
}

Trace device_trace(const TorchSnapshot& snapshot, std::size_t device, SnapshotHistory* history) {
  return to_trace(snapshot, {.only = device, .try_failed = true}, history);
}

}  // namespace tidepool
