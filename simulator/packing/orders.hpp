// In which orders one pass over the items makes good layouts.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/packing/instance.hpp"

namespace tidepool {

/// What comes first; ties are broken by the place in the instance.
enum class PackingOrder : std::uint8_t {
  kSize,      ///< the largest
  kSizeLife,  ///< the largest, of equal size the longest
  kArea,      ///< the largest product of size and life
  kLife,      ///< the longest
  kBirth      ///< the first to begin, of these the longest
};

std::vector<std::uint32_t> in_order(const Instance& instance, PackingOrder order);

}  // namespace tidepool
