// The best-fit-with-coalescing allocator of TensorFlow and XLA.
#pragma once

#include <optional>

#include "simulator/engine/pools/free_index.hpp"
#include "simulator/engine/pools/segment_blocks.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

struct BfcConfig {
  bool allow_growth = true;           ///< regions as needed; otherwise the whole limit from the start
  bool garbage_collection = false;    ///< free regions are released before a request fails
  double fragmentation_fraction = 0;  ///< share of the limit: rests of at least so much are split off; 0: 128 MiB
};

/// Sizes are multiples of 256 B. A request gets the smallest free chunk that fits, lowest address among equals: the
/// allocator's bins, one for each power of two from 256 B on, only narrow this search. A chunk that is at least twice
/// as large, or larger by at least 128 MiB (or the fragmentation_fraction), is split, and the request takes the low
/// part; otherwise it gets the whole chunk.
/// Free chunks merge with free neighbours at once, never across regions (its sub-allocator for cudaMalloc does not
/// support that).
///
/// A miss extends the memory by a region: at first 2 MiB, doubled until the request fits. The size of the next
/// region doubles after each region that was not enlarged for its request. A region is at most the rest of the limit;
/// when the device refuses it, 0.9 of it is tried, as long as the request fits. Source: openxla/xla,
/// xla/tsl/framework/bfc_allocator.cc at 00df9ee, without spatial partitioning, timestamps and waiting for other
/// threads.
class Bfc {
 public:
  static constexpr Bytes kGranule{256};

  Bfc(const BfcConfig& config, Device& device, Bytes limit);

  /// A request of no bytes gets one granule.
  std::optional<Block> malloc(Bytes size);
  /// @return whether `address` was in use
  bool free(Bytes address);
  Bytes largest_hole() const;

 private:
  bool take(Bytes size, std::optional<Block>& block);
  bool extend(Bytes size);
  bool release_free_regions(Bytes size);
  void add_region(Bytes address, Bytes size);
  void insert_free(std::uint32_t id);
  void erase_free(std::uint32_t id);

  BfcConfig config_;
  Device* device_;
  Bytes limit_;
  Bytes most_waste_;   // chunks are split if at least this would be wasted
  Bytes next_region_;  // least size of the next region
  Bytes reserved_;
  SegmentBlocks blocks_;
  AddressMap used_;
  FreeIndex free_;
};

}  // namespace tidepool
