// Blocks in use at the beginning of an allocator's log, inferred from those at its end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/engine/pools/caching_allocator.hpp"
#include "simulator/studies/audit/audit.hpp"
#include "simulator/studies/audit/expandable_ranges.hpp"
#include "traces/import/torch_snapshot.hpp"

namespace tidepool {

/// A block in use when the log begins.
struct StartBlock {
  std::int64_t address = 0;
  Bytes size;                        ///< with the known slack
  Bytes most_slack;                  ///< the most unknown slack; 0 if the size is determined
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

/// The state before the first event of a device's log. The size of a block is exact if the block still exists at the
/// end. It is also exact in small and expandable segments, where the request's size determines it. In a large native
/// segment, a block keeps up to 1 MiB that was not split off (slack). The slack is known in three cases: the block is
/// not smaller than max_split_size and was not split; at most 1 MiB follows the block (a free block is larger); or an
/// allocation in the log begins directly after it. The other blocks are ambiguous(). Expandable pages are small or
/// large according to their size, the blocks in them, the other pages of the same release, and adjacent pages.
struct StartState {
  std::vector<StartSegment> segments;
  std::vector<ExpandableRange> ranges;  ///< address ranges of expandable segments, also those reserved later
  Bytes range_size;                     ///< the assumed size of the ranges
  std::string contradiction;  ///< the first event that cannot have led to the final state; empty if there is none

  std::vector<AmbiguousBlock> ambiguous() const;
  /// "determined", "ambiguous: N blocks, first at 0x..." or "contradiction: ...".
  std::string text() const;
};

/// Walks the events of `device` backwards from the final segments.
/// @param config  range_size: the size of the ranges; unlimited: inferred from the distances between them
StartState start_state(const TorchSnapshot& snapshot, int device, const CachingConfig& config);

}  // namespace tidepool
