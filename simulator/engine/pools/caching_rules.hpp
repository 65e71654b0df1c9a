// Sizes of PyTorch's caching allocator: rounded requests, and segments.
#pragma once

#include <array>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// Settings of PyTorch's allocator (PYTORCH_CUDA_ALLOC_CONF), with its defaults.
/// Source: c10/cuda/CUDACachingAllocator.cpp and c10/core/AllocatorConfig.h, PyTorch 2.0 to 2.10.
struct CachingConfig {
  static constexpr Bytes kUnlimited{std::int64_t{1} << 62};

  Bytes max_split_size = kUnlimited;        ///< blocks of this size and more are never split
  Bytes max_non_split_rounding{20 << 20};   ///< a request of max_split_size or more wastes less than this in its block
  double garbage_collection_threshold = 0;  ///< fraction of the capacity; 0 = off
  std::array<int, 16> roundup_power2_divisions{};  ///< [i]: for sizes from 2^i MiB, [0] also for smaller ones; 0 = off
  Bytes large_segment_size{20 << 20};              ///< for requests from 1 to 10 MiB, and large expandable pages
  bool expandable_segments = false;
  Bytes range_size = kUnlimited;  ///< addresses of one expandable segment; unlimited: 9/8 of the device's memory
};

inline constexpr Bytes kCachingMinBlock{512};
inline constexpr Bytes kCachingSmallSize{1 << 20};       ///< rounded requests up to this are small
inline constexpr Bytes kCachingSmallSegment{2 << 20};    ///< segment and page size for small requests
inline constexpr Bytes kCachingMinLargeAlloc{10 << 20};  ///< a request from here on gets a segment of its own
inline constexpr Bytes kCachingRoundLarge{2 << 20};      ///< such a segment's size is a multiple of this

/// The rounded size of a request: its block has at least this size.
Bytes rounded_request(const CachingConfig& config, Bytes size);

/// The size of the segment that is requested from the device if no cached block fits a rounded request.
Bytes segment_for(const CachingConfig& config, Bytes rounded);

}  // namespace tidepool
