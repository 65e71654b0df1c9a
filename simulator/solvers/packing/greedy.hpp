// One-pass placement: items in a given order, each at a place that the items before it leave, and orders in which one
// pass makes good layouts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "simulator/instance.hpp"
#include "simulator/solvers/packing/occupancy.hpp"

namespace tidepool {

/// Places every item. Fixed items come first, wherever they are in the order. Items of no bytes lie at their fixed
/// offset, or else at 0.
/// @param order  has every item that is not fixed exactly once, and may have fixed ones
/// @return       offsets by item. Reads O(n log n) lists, see Occupancy: 20,000 items take some 20 ms
std::vector<Bytes> place_in_order(const Instance& instance, std::span<const std::uint32_t> order, Fit fit);

/// The same with sections that a caller of several orders computes once.
std::vector<Bytes> place_in_order(const Instance& instance, const Sections& sections,
                                  std::span<const std::uint32_t> order, Fit fit);

/// Height of a layout: max(offset + size).
Bytes height_of(const Instance& instance, const std::vector<Bytes>& offsets);

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

/// TFLite's greedy by breadth. It visits positions in decreasing order of the bytes that live there, and assigns the
/// remaining buffers of a position in decreasing order of size. A buffer goes to the smallest shared object that is
/// large enough and free during its life; else to the largest free object, which grows; else to a new one. Objects are
/// then stacked above fixed items, in the order in which they were made. O(n log n), and for each buffer one search in
/// every object that is tried.
/// Source: Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", arXiv 2001.03288, section 4.2;
/// tensorflow/lite/delegates/gpu/common/memory_management/greedy_by_breadth_assignment.cc, 2025.
std::vector<Bytes> place_by_breadth(const Instance& instance);

}  // namespace tidepool
