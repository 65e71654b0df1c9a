// Address ranges of expandable segments over time, which a snapshot does not list.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "simulator/engine/pools/caching_allocator.hpp"
#include "simulator/studies/audit/memory_pieces.hpp"
#include "traces/import/torch_snapshot.hpp"

namespace tidepool {

/// The size of a range of addresses that no other range follows.
inline constexpr Bytes kOpenEnd{std::int64_t{1} << 46};

/// The pool and stream that a piece of mapped memory belongs to.
struct MappedFor {
  CachingAllocator::Key key;
  bool expandable = false;
  bool certain = true;  ///< whether key.small is known; key.small is false if not
};

/// Addresses reserved for one expandable segment, from its first pages until the last ones are unmapped. The same
/// addresses may be reserved again later.
struct ExpandableRange {
  CachingAllocator::Key key;
  Block place;
  std::optional<std::size_t> begun;  ///< by this event, which maps the first pages; absent: older than the log
  std::vector<Block> mapped;         ///< when the log begins: disjoint, in address order
};

/// Walks a device's events forwards. Neighbouring pages of one key that are mapped at the same time are in one range.
/// The range begins at the lowest of these pages. It ends where other memory is mapped while the range exists, or else
/// after `longest` bytes, rounded up to pages. If the log does not say whether pages are small or large, they are of
/// the kind of adjacent pages of their stream and pool, and large if they have no such neighbours.
/// @param start  mapped memory at the beginning of the log
/// @param maps   the owner of the pages of each kSegmentMap event, in order
/// @return       ranges in the order in which they begin; those older than the log come first, in address order
std::vector<ExpandableRange> find_ranges(const MemoryPieces<MappedFor>& start, const std::vector<SnapshotEvent>& events,
                                         std::span<const MappedFor> maps, const CachingConfig& config, Bytes longest);

/// An estimate of the size of ranges: the least distance from the start of a range to other memory above it; kOpenEnd
/// if there is none. It assumes that all ranges have the same size and that drivers reserve them side by side.
/// @param ranges  of find_ranges() with kOpenEnd as `longest`
Bytes range_distance(const std::vector<ExpandableRange>& ranges);

/// The owner of a segment.
MappedFor mapped_for(const SnapshotSegment& segment);
/// The owner of pages that an event maps or unmaps, by their size in bytes: a multiple of the large page's size means
/// large pages. This result is not certain, since small pages that are unmapped together may have such a size, too.
MappedFor pages_for(const SnapshotEvent& event, const CachingConfig& config);
/// The owner of a native segment that an event allocates or frees.
MappedFor native_for(const SnapshotEvent& event);

}  // namespace tidepool
