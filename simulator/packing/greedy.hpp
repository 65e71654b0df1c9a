// One-pass placement: items in a given order, each where it fits among those before it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/packing/occupancy.hpp"

namespace tidepool {

/// Places every item once. Fixed items come first, whatever the order says of them; items of no bytes lie at 0 or where
/// they are fixed.
/// @param order  each item that is not fixed once; fixed ones may be in it
/// @return       offsets by item. O(n log n) lists are looked at, see Occupancy: 20,000 items take some 20 ms
std::vector<Bytes> place_in_order(const Instance& instance, std::span<const std::uint32_t> order, Fit fit);

/// The same where the sections are known already, as for a second order.
std::vector<Bytes> place_in_order(const Instance& instance, const Sections& sections,
                                  std::span<const std::uint32_t> order, Fit fit);

/// max(offset + size): what a layout needs.
Bytes height_of(const Instance& instance, const std::vector<Bytes>& offsets);

}  // namespace tidepool
