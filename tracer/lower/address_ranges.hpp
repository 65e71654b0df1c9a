// A set of addresses, kept as ranges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace tidepool {

/// Ranges [first, last) that neither overlap nor touch each other. Each call is O(log n), plus O(1) for each range that
/// it removes.
class AddressRanges {
 public:
  void add(std::uint64_t first, std::uint64_t last) {
    if (first >= last) return;
    auto next = ranges_.upper_bound(first);
    if (next != ranges_.begin() && std::prev(next)->second >= first) {
      --next;
      first = next->first;
    }
    while (next != ranges_.end() && next->first <= last) {
      last = std::max(last, next->second);
      next = ranges_.erase(next);
    }
    ranges_.emplace_hint(next, first, last);
  }

  void remove(std::uint64_t first, std::uint64_t last) {
    if (first >= last) return;
    auto next = ranges_.lower_bound(first);
    if (next != ranges_.begin() && std::prev(next)->second > first) {
      const std::uint64_t end = std::prev(next)->second;
      std::prev(next)->second = first;
      if (end > last) ranges_.emplace_hint(next, last, end);
    }
    while (next != ranges_.end() && next->first < last) {
      const std::uint64_t end = next->second;
      next = ranges_.erase(next);
      if (end > last) ranges_.emplace_hint(next, last, end);
    }
  }

  /// The first address at or after `address` that is not in the set.
  std::uint64_t end_of(std::uint64_t address) const {
    const auto next = ranges_.upper_bound(address);
    return next == ranges_.begin() ? address : std::max(address, std::prev(next)->second);
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // first address -> end of the range
};

}  // namespace tidepool
