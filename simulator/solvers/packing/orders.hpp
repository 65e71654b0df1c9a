// Orders of items in which one pass makes good layouts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simulator/instance.hpp"

namespace tidepool {

/// The key that decides which item comes first. Items with equal keys keep their order in the instance.
enum class PackingOrder : std::uint8_t {
  kSize,      ///< the largest, of equal size the first to begin
  kSizeLife,  ///< the largest, of equal size the longest
  kArea,      ///< the largest product of size and life
  kLife,      ///< the longest, of equal life the largest
  kBirth      ///< the first to begin
};
inline constexpr std::array kPackingOrders{PackingOrder::kSize, PackingOrder::kSizeLife, PackingOrder::kArea,
                                           PackingOrder::kLife, PackingOrder::kBirth};
/// "size", "size-life", "area", "life", "birth".
std::string_view to_text(PackingOrder order);

std::vector<std::uint32_t> in_order(const Instance& instance, PackingOrder order);

}  // namespace tidepool
