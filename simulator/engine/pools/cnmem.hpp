// Exact model of CnMem's memory manager.
#pragma once

#include <optional>

#include "simulator/engine/pools/free_index.hpp"
#include "simulator/engine/pools/segment_blocks.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

/// The root manager of NVIDIA's CnMem. It serves every stream that was not registered with a manager of its own. Sizes
/// are multiples of 512 B. A request gets the smallest free block that fits, the lowest address among equals; it takes
/// the low part, and the rest stays free at any size. If no block fits, CnMem asks the device for exactly the rounded
/// size. Freed blocks merge with free neighbours, but never across two segments, and segments are never given back.
/// Source: github.com/NVIDIA/cnmem, src/cnmem.cpp at 37896cc (2018).
class CnMem {
 public:
  static constexpr Bytes kGranularity{512};

  /// @param initial  size of the first segment, reserved at once; nothing if it rounds to 0 or the device refuses it
  CnMem(Device& device, Bytes initial);

  /// A request of 0 bytes gets kGranularity bytes.
  std::optional<Block> malloc(Bytes size);
  /// @return whether `address` was in use
  bool free(Bytes address);
  Bytes largest_hole() const { return free_.largest(); }

 private:
  std::uint32_t add_segment(Bytes address, Bytes size);
  void absorb_free_next(std::uint32_t id);

  Device* device_;
  SegmentBlocks blocks_;
  AddressMap used_;
  FreeIndex free_;
};

}  // namespace tidepool
