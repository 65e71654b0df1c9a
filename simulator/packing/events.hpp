// Beginnings and ends of an instance's items, in order.
#pragma once

#include <compare>

#include "simulator/packing/instance.hpp"

namespace tidepool {

/// An interval of an item begins or ends.
struct PackingEvent {
  std::int64_t position = 0;
  std::uint32_t item = 0;
  bool begins = false;

  /// At one position, ends come before beginnings, since intervals are half-open.
  auto operator<=>(const PackingEvent& other) const {
    if (const auto order = position <=> other.position; order != 0) return order;
    if (const auto order = begins <=> other.begins; order != 0) return order;
    return item <=> other.item;
  }
  bool operator==(const PackingEvent&) const = default;
};

/// All events of an instance, in order.
std::vector<PackingEvent> events_of(const Instance& instance);

}  // namespace tidepool
