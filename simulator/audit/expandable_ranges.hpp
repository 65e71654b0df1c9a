// Where the address ranges of expandable segments lie, which a snapshot does not say.
#pragma once

#include <vector>

#include "simulator/pools/caching_allocator.hpp"
#include "traces/import/torch_snapshot.hpp"

namespace tidepool {

/// Addresses reserved for one expandable segment.
struct ExpandableRange {
  int device = 0;
  CachingAllocator::Key key;
  Block place;
};

/// Groups neighbouring pages of one device and key: a range begins at the lowest page that the snapshot ever shows of
/// it and ends where something else begins, at the latest after `longest`. In address order.
std::vector<ExpandableRange> find_ranges(const TorchSnapshot& snapshot, const CachingConfig& config, Bytes longest);

/// All ranges are equally long, and drivers reserve one next to the other: the least distance from the begin of one to
/// what follows, CachingConfig::kUnlimited if nothing follows any.
Bytes range_distance(const std::vector<ExpandableRange>& ranges);

CachingAllocator::Key key_of(const SnapshotSegment& segment);
/// Of pages that an event maps: those of large segments come in multiples of their size, which no small request needs.
CachingAllocator::Key key_of_pages(const SnapshotEvent& event, const CachingConfig& config);
/// Of a native segment that an event allocates or frees.
CachingAllocator::Key key_of_native(const SnapshotEvent& event);

}  // namespace tidepool
