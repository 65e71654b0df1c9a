// The problem of offline planners: addresses for items of known lifetimes and sizes.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// [lower, upper): positions in program order.
struct Interval {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  bool operator==(const Interval&) const = default;
};

/// A user of [offset, offset + size) during each of its intervals, at the same offset in all of them. A buffer that may
/// move between two intervals is two items.
struct Item {
  Bytes size = {};
  Bytes alignment{1};               ///< the offset is a multiple of it
  std::optional<Bytes> fixed = {};  ///< the offset, where it is given beforehand
  std::uint32_t first = 0;          ///< intervals [first, last) of the instance, ascending, with gaps between them
  std::uint32_t last = 0;
  std::uint32_t id = 0;  ///< the buffer's id, or the row of the file
  bool operator==(const Item&) const = default;
};

/// An instance of dynamic storage allocation: give every item an offset >= 0 such that no two items that live at the
/// same position overlap, and the height, max(offset + size), is least (Garey & Johnson SR2; NP-hard in the strong
/// sense). Items of no bytes fit anywhere.
struct Instance {
  std::vector<Item> items;
  std::vector<Interval> intervals;

  /// Appends an item that lives once. @return it, to set alignment, fixed or id
  Item& add(Bytes size, std::int64_t lower, std::int64_t upper);
  /// Appends an item with several intervals.
  Item& add(Bytes size, std::span<const Interval> lives);

  std::span<const Interval> lives(const Item& item) const {
    return std::span{intervals}.subspan(item.first, item.last - item.first);
  }
  bool operator==(const Instance&) const = default;
};

/// Refuses instances that have no layout, and sizes that would overflow.
/// @throws InputError  naming the item by its id, as in
///   "buffer 3: lives [7, 7); expected a lifetime that ends after it begins"
///   "buffer 3: lives [7, 9) and then [8, 12); expected ascending lifetimes with a gap between them"
///   "buffer 3: size is -8 B; expected at least 0 B"
///   "buffer 3: alignment is 0 B; expected at least 1 B"
///   "buffer 3: is fixed at -1 B; expected at least 0 B"
///   "buffer 3: is fixed at 24 B, which is no multiple of its alignment, 16 B"
///   "buffers 3 and 5: both live at position 7 and are fixed at [0, 64) B and [32, 96) B"
///   "buffer 3: the sizes up to here exceed 4611686018427387904 B"
void check(const Instance& instance);

/// Largest sum of the sizes that live at one position: no layout is lower.
Bytes load_of(const Instance& instance);

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

/// The lifetimes of the buffers of one device of a trace, in program order, with their ids. Positions count the
/// device's allocs and frees. A buffer that exists before the trace lives from 0. A buffer that outlives the trace
/// lives until behind the last position. A buffer that several streams use lives until the last of them has used it
/// (see stream_ends()).
/// @param alignment  sizes and offsets are multiples of it, and no size is 0
Instance lifetimes_of(const Trace& trace, std::uint16_t device, Bytes alignment);

}  // namespace tidepool
