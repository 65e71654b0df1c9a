// Ranges of addresses with a value each: places in use, and memory that is free from some moment on.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// Disjoint ranges of addresses: a flat tree of two levels. Leaves hold at most kMost ranges each, sorted; the first
/// addresses of all leaves are in one array, so that a search touches few cache lines. This matters, since every second
/// action of a plan changes a range. A change costs O(log n + n / kMost^2) with a small constant.
template <class Value>
class DisjointRanges {
 public:
  struct Range {
    Bytes first, end;
    Value value;
  };

  bool empty() const { return order_.empty(); }

  /// Adds a range, or names the value of one that it overlaps.
  std::optional<Value> add(Bytes first, Bytes end, const Value& value) {
    Place at = above(first);
    if (const Range* const other = overlapping(at, first, end)) return other->value;
    if (order_.empty()) {
      add_leaf(0, first);
      at = {0, 0};
    } else if (leaf(at).count == kMost) {
      split(at.leaf);
      at = above(first);
    }
    Leaf& to = leaf(at);
    Range* const behind = to.ranges.data() + to.count;
    std::copy_backward(to.ranges.data() + at.slot, behind, behind + 1);
    to.ranges[at.slot] = {first, end, value};
    ++to.count;
    return std::nullopt;
  }

  /// Removes the range that begins at `first`, if there is one.
  void remove(Bytes first) {
    const Place at = above(first);
    if (!begins_before(at, first)) return;
    Leaf& from = leaf(at);
    Range* const next = from.ranges.data() + at.slot;
    std::copy(next, from.ranges.data() + from.count, next - 1);
    if (--from.count == 0) remove_leaf(at.leaf);
  }

  /// The range that begins at `first`, if there is one, gets another value.
  void set(Bytes first, const Value& value) {
    const Place at = above(first);
    if (begins_before(at, first)) leaf(at).ranges[at.slot - 1].value = value;
  }

  /// A range that overlaps [first, end); null if none does. Valid until the next change.
  const Range* find(Bytes first, Bytes end) const { return overlapping(above(first), first, end); }

  /// Removes the ranges for which is_past(const Value&) is true. @return  the number of ranges that are left
  template <class IsPast>
  std::size_t remove_if(IsPast is_past) {
    std::size_t left = 0;
    for (std::size_t i = order_.size(); i-- > 0;) {
      Leaf& each = leaf({i, 0});
      const auto last = each.ranges.begin() + static_cast<std::ptrdiff_t>(each.count);
      const auto kept = std::remove_if(each.ranges.begin(), last, [&](const Range& r) { return is_past(r.value); });
      each.count = static_cast<std::size_t>(kept - each.ranges.begin());
      left += each.count;
      if (each.count == 0) remove_leaf(i);
    }
    return left;
  }

  /// Calls visit(const Range&) for every range in address order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < order_.size(); ++i)
      for (std::size_t slot = 0; slot < leaf({i, 0}).count; ++slot) visit(leaf({i, 0}).ranges[slot]);
  }

 private:
  static constexpr std::size_t kMost = 64;
  struct Leaf {
    std::size_t count = 0;
    std::array<Range, kMost> ranges;
  };
  struct Place {
    std::size_t leaf, slot;  // a position in order_, and one behind a range
  };

  Leaf& leaf(Place at) { return leaves_[order_[at.leaf]]; }
  const Leaf& leaf(Place at) const { return leaves_[order_[at.leaf]]; }

  /// The place behind the last range that does not begin above the address, or at the front of the leaf behind it.
  Place above(Bytes address) const {
    if (order_.empty()) return {0, 0};
    const auto next = std::upper_bound(begins_.begin(), begins_.end(), address);
    const std::size_t number = static_cast<std::size_t>(next - begins_.begin());
    const std::size_t at = number == 0 ? 0 : number - 1;
    const Leaf& own = leaf({at, 0});
    const auto begins_above = [](Bytes value, const Range& range) { return value < range.first; };
    const Range* const from = own.ranges.data();
    return {at, static_cast<std::size_t>(std::upper_bound(from, from + own.count, address, begins_above) - from)};
  }
  bool begins_before(Place at, Bytes first) const { return at.slot > 0 && leaf(at).ranges[at.slot - 1].first == first; }

  /// find(), where `at` is above(first).
  const Range* overlapping(Place at, Bytes first, Bytes end) const {
    if (order_.empty()) return nullptr;
    const Leaf& own = leaf(at);
    const Range* next = at.slot < own.count ? &own.ranges[at.slot] : nullptr;
    if (next == nullptr && at.leaf + 1 < order_.size()) next = leaf({at.leaf + 1, 0}).ranges.data();
    if (next != nullptr && next->first < end) return next;
    const Range* before = at.slot > 0 ? &own.ranges[at.slot - 1] : nullptr;
    if (before == nullptr && at.leaf > 0) {
      const Leaf& lower = leaf({at.leaf - 1, 0});
      before = &lower.ranges[lower.count - 1];
    }
    return before != nullptr && before->end > first ? before : nullptr;
  }

  void add_leaf(std::size_t position, Bytes begin) {
    if (spare_.empty()) {
      spare_.push_back(static_cast<std::uint32_t>(leaves_.size()));
      leaves_.emplace_back();
    }
    order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(position), spare_.back());
    begins_.insert(begins_.begin() + static_cast<std::ptrdiff_t>(position), begin);
    spare_.pop_back();
  }
  void remove_leaf(std::size_t position) {
    spare_.push_back(order_[position]);
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(position));
    begins_.erase(begins_.begin() + static_cast<std::ptrdiff_t>(position));
  }
  void split(std::size_t position) {
    constexpr std::size_t kHalf = kMost / 2;
    add_leaf(position + 1, leaf({position, 0}).ranges[kHalf].first);
    Leaf &front = leaf({position, 0}), &back = leaf({position + 1, 0});
    std::copy(front.ranges.begin() + kHalf, front.ranges.end(), back.ranges.begin());
    front.count = kHalf, back.count = kMost - kHalf;
  }

  std::vector<Leaf> leaves_;
  std::vector<std::uint32_t> spare_;  // leaves without ranges
  std::vector<std::uint32_t> order_;  // leaves with ranges, by address
  std::vector<Bytes> begins_;         // of each of them: no range of it begins below, except in the first leaf
};

}  // namespace tidepool
