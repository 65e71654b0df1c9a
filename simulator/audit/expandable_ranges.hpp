// Address ranges of expandable segments over time, which a snapshot does not list.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "simulator/audit/memory_pieces.hpp"
#include "simulator/pools/caching_allocator.hpp"
#include "traces/import/torch_snapshot.hpp"

namespace tidepool {

/// How far a range of addresses reaches when nothing follows it.
inline constexpr Bytes kOpenEnd{std::int64_t{1} << 46};

/// What a piece of mapped memory belongs to.
struct MappedFor {
  CachingAllocator::Key key;
  bool expandable = false;
  bool certain = true;  ///< key.small is; if not, it says large
};

/// Addresses reserved for one expandable segment, from its first pages until the last ones are unmapped. The same
/// addresses may be reserved again later.
struct ExpandableRange {
  CachingAllocator::Key key;
  Block place;
  std::optional<std::size_t> begun;  ///< by this event, which maps the first pages; absent: older than the log
  std::vector<Block> mapped;         ///< when the log begins: disjoint, in address order
};

/// Walks a device's events forwards. Neighbouring pages of one key that are mapped at the same time are in one range:
/// it begins at the lowest of them and ends where something else is mapped meanwhile, at the latest after `longest`,
/// rounded up to pages. Pages that may be small or large are as those of their stream and pool that they touch, large
/// if they touch none.
/// @param start  what is mapped when the log begins
/// @param maps   what the pages of each kSegmentMap are for, in order
/// @return       in the order of their begins, those at the begin of the log in address order
std::vector<ExpandableRange> find_ranges(const MemoryPieces<MappedFor>& start, const std::vector<SnapshotEvent>& events,
                                         std::span<const MappedFor> maps, const CachingConfig& config, Bytes longest);

/// All ranges are equally long, and drivers reserve one next to the other: the least distance from the begin of one to
/// what follows, kOpenEnd if nothing follows any.
Bytes range_distance(const std::vector<ExpandableRange>& ranges);

MappedFor mapped_for(const SnapshotSegment& segment);
/// Of pages that an event maps or unmaps: those of large segments come in multiples of their size. So may small ones
/// that are given back together.
MappedFor pages_for(const SnapshotEvent& event, const CachingConfig& config);
/// Of a native segment that an event allocates or frees.
MappedFor native_for(const SnapshotEvent& event);

}  // namespace tidepool
