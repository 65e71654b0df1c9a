// Exact model of CnMem's memory manager.
#pragma once

#include <optional>

#include "simulator/pool.hpp"
#include "simulator/pools/free_index.hpp"
#include "simulator/pools/segment_blocks.hpp"

namespace tidepool {

/// The root manager of NVIDIA's CnMem, which serves every stream that was not registered with a manager of its own:
/// sizes in multiples of 512 B, exact best fit with ties to the lowest address; the low part is taken and the rest
/// stays free at any size. A miss asks the device for exactly the rounded size. Freed blocks merge with free
/// neighbours, but never across two segments, and segments are never given back. Source: github.com/NVIDIA/cnmem,
/// src/cnmem.cpp at 37896cc (2018).
class CnMem {
 public:
  static constexpr Bytes kGranularity{512};

  /// @param initial  size of the first segment, reserved at once; nothing if it rounds to 0 or the device refuses it
  CnMem(Device& device, Bytes initial);

  /// A request of no bytes gets one granule.
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
