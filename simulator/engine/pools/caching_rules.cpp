#include "simulator/engine/pools/caching_rules.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tidepool {
namespace {

/// Rounds a size up to the next of `divisions` equal steps between two powers of two. Powers of two stay.
std::int64_t next_division(std::int64_t size, int divisions) {
  const auto value = static_cast<std::uint64_t>(size);
  if (std::has_single_bit(value)) return size;
  const std::uint64_t floor = std::bit_floor(value);
  const std::uint64_t part = floor >> (std::bit_width(static_cast<unsigned>(divisions)) - 1);
  if (part == 0) return static_cast<std::int64_t>(floor << 1);
  return static_cast<std::int64_t>((value + part - 1) & ~(part - 1));
}

}  // namespace

Bytes rounded_request(const CachingConfig& config, Bytes size) {
  if (size < kCachingMinBlock) return kCachingMinBlock;
  const int exponent = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size.count()))) - 1;
  const auto interval = static_cast<std::size_t>(std::clamp(exponent - 20, 0, 15));
  const int divisions = config.roundup_power2_divisions[interval];
  if (divisions > 1 && size > kCachingMinBlock * divisions) return Bytes{next_division(size.count(), divisions)};
  return round_up(size, kCachingMinBlock);
}

Bytes segment_for(const CachingConfig& config, Bytes rounded) {
  if (rounded <= kCachingSmallSize) return kCachingSmallSegment;
  if (rounded < kCachingMinLargeAlloc) return config.large_segment_size;
  return round_up(rounded, kCachingRoundLarge);
}

}  // namespace tidepool
