// Blocks that an allocator held when its log begins, found from those that it holds at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/audit/expandable_ranges.hpp"
#include "simulator/audit/report.hpp"
#include "simulator/pools/caching_allocator.hpp"
#include "traces/import/torch_snapshot.hpp"

namespace tidepool {

/// A block in use when the trace begins.
struct StartBlock {
  std::int64_t address = 0;
  Bytes size;                        ///< with as much slack as is known
  Bytes most_slack;                  ///< what could still be added: 0 if the size is determined
  std::optional<std::size_t> freed;  ///< the event that frees it
};

/// A native segment, or one range of addresses that is mapped in part.
struct StartSegment {
  CachingAllocator::Key key;
  bool expandable = false;
  Block place;
  std::vector<Block> mapped;  ///< expandable: disjoint, in address order
  std::vector<StartBlock> used;
};

/// The state when the first event of a device's trace happened. Sizes of blocks are exact where they still exist at the
/// end, and in small and expandable segments, where a request's size says them. In a large native segment a block keeps
/// up to 1 MiB that was not worth splitting off; that slack is known where less than 1 MiB follows (a free block is
/// larger), and where a later event of the trace begins right behind it. What remains is ambiguous().
/// Whether expandable pages were small or large ones is seen by their size, by the blocks in them, by what else the
/// same release gave back, and by the pages that they touch.
struct StartState {
  std::vector<StartSegment> segments;
  std::vector<ExpandableRange> ranges;  ///< of addresses that expandable segments lie in, later ones included
  Bytes range_size;                     ///< how long the ranges are taken to be
  std::string contradiction;  ///< the first event that cannot have led to the final state; empty if there is none

  std::vector<AmbiguousBlock> ambiguous() const;
  /// "determined", "ambiguous: N blocks, first at 0x..." or "contradiction: ...".
  std::string text() const;
};

/// Walks the events of `device` backwards from the final segments.
/// @param config  range_size: that of the ranges; unlimited: as the distances between them say
StartState start_state(const TorchSnapshot& snapshot, int device, const CachingConfig& config);

}  // namespace tidepool
