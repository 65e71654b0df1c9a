#include "simulator/audit/expandable_ranges.hpp"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>

namespace tidepool {
namespace {

/// What an address belongs to.
struct Owner {
  int device = 0;
  bool expandable = false;
  CachingAllocator::Key key;
  bool operator==(const Owner&) const = default;
};

using Owners = std::map<std::int64_t, Owner>;

void add_events(Owners& owners, int device, const std::vector<SnapshotEvent>& events, const CachingConfig& config) {
  for (const SnapshotEvent& event : events) switch (event.action) {
      case SnapshotAction::kSegmentMap:
      case SnapshotAction::kSegmentUnmap:
        owners.emplace(event.address, Owner{device, true, key_of_pages(event, config)});
        break;
      case SnapshotAction::kSegmentAlloc:
      case SnapshotAction::kSegmentFree:
        owners.emplace(event.address, Owner{device, false, key_of_native(event)});
        break;
      default:
        break;
    }
}

CachingAllocator::Key key_of(const SnapshotEvent& event, bool small) {
  const SnapshotPool pool = event.pool.value_or(SnapshotPool{});
  return {pool.owner, pool.number, small, event.stream};
}

}  // namespace

CachingAllocator::Key key_of(const SnapshotSegment& segment) {
  return {segment.pool.owner, segment.pool.number, segment.small, segment.stream};
}

CachingAllocator::Key key_of_pages(const SnapshotEvent& event, const CachingConfig& config) {
  return key_of(event, event.size < config.large_segment_size);
}

CachingAllocator::Key key_of_native(const SnapshotEvent& event) {
  return key_of(event, event.size <= kCachingSmallSegment);
}

std::vector<ExpandableRange> find_ranges(const TorchSnapshot& snapshot, const CachingConfig& config, Bytes longest) {
  Owners owners;
  for (const SnapshotSegment& segment : snapshot.segments)
    owners.emplace(segment.address, Owner{segment.device, segment.expandable, key_of(segment)});
  for (std::size_t device = 0; device < snapshot.device_traces.size(); ++device)
    add_events(owners, static_cast<int>(device), snapshot.device_traces[device], config);
  std::vector<ExpandableRange> ranges;
  std::optional<Owner> open;
  for (const auto& [address, owner] : owners) {
    if (open == owner) continue;
    if (open && open->expandable) {
      Bytes& size = ranges.back().place.size;
      size = std::min(size, Bytes{address} - ranges.back().place.offset);
    }
    open = owner;
    if (owner.expandable) ranges.push_back({owner.device, owner.key, {Bytes{address}, longest}});
  }
  return ranges;
}

Bytes range_distance(const std::vector<ExpandableRange>& ranges) {
  Bytes least = CachingConfig::kUnlimited;
  for (const ExpandableRange& range : ranges) least = std::min(least, range.place.size);
  return least;
}

}  // namespace tidepool
