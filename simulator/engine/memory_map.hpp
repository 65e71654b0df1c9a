// Address ranges that are mapped to memory which also has other addresses.
#pragma once

#include <algorithm>
#include <map>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// A set of windows. A window maps addresses [first, end) to the memory whose own addresses begin at `memory`. Several
/// windows may map to the same memory, but two live buffers may not use it. An address in no window is its own memory.
/// O(log n) plus the number of windows in the range, unless stated otherwise.
class MemoryMap {
 public:
  bool empty() const { return windows_.empty(); }

  /// @return  false if some of the addresses are mapped already
  bool map(Bytes address, Bytes size, Bytes memory) {
    if (size <= Bytes{}) return true;
    if (overlaps(address, size)) return false;
    auto window = windows_.emplace(address, Window{address + size, memory}).first;
    if (const auto next = std::next(window); next != windows_.end() && continues(*window, *next)) {
      window->second.end = next->second.end;
      windows_.erase(next);
    }
    if (window != windows_.begin() && continues(*std::prev(window), *window)) {
      std::prev(window)->second.end = window->second.end;
      windows_.erase(window);
    }
    return true;
  }

  /// @return  false if some of the addresses are not mapped
  bool unmap(Bytes address, Bytes size) {
    if (size <= Bytes{}) return true;
    if (!covers(address, size)) return false;
    const Bytes end = address + size;
    auto window = std::prev(windows_.upper_bound(address));
    while (window != windows_.end() && window->first < end) {
      const auto [first, old] = *window;
      window = windows_.erase(window);
      if (first < address) windows_.emplace(first, Window{address, old.memory});
      if (old.end > end) windows_.emplace(end, Window{old.end, old.memory + (end - first)});
    }
    return true;
  }

  /// Whether some of the addresses are mapped.
  bool overlaps(Bytes address, Bytes size) const {
    const auto after = windows_.lower_bound(address + size);
    return after != windows_.begin() && std::prev(after)->second.end > address;
  }

  /// Whether all of the addresses are mapped.
  bool covers(Bytes address, Bytes size) const {
    Bytes covered = address;
    for_each_window(address, size, [&](Bytes first, Bytes end, Bytes /*memory*/) {
      if (first <= covered) covered = end;
    });
    return covered >= address + size;
  }

  /// Whether some window maps to a part of this memory. O(n).
  bool shows(Bytes memory, Bytes size) const {
    return std::any_of(windows_.begin(), windows_.end(), [&](const auto& window) {
      const Bytes begin = window.second.memory, end = begin + (window.second.end - window.first);
      return begin < memory + size && memory < end;
    });
  }

  /// Calls visit(Bytes memory, Bytes size) for all memory that [address, address + size) is mapped to, in address
  /// order.
  template <class Visit>
  void for_each_piece(Bytes address, Bytes size, Visit visit) const {
    Bytes from = address;
    for_each_window(address, size, [&](Bytes first, Bytes end, Bytes memory) {
      if (from < first) visit(from, first - from);
      visit(memory, end - first);
      from = end;
    });
    if (from < address + size) visit(from, address + size - from);
  }

 private:
  struct Window {
    Bytes end, memory;
  };

  static bool continues(const std::pair<const Bytes, Window>& before, const std::pair<const Bytes, Window>& next) {
    return before.second.end == next.first &&
           before.second.memory + (before.second.end - before.first) == next.second.memory;
  }

  /// Calls visit(first, end, memory of first) for the part of every window that lies in [address, address + size).
  template <class Visit>
  void for_each_window(Bytes address, Bytes size, Visit visit) const {
    auto window = windows_.upper_bound(address);
    if (window != windows_.begin() && std::prev(window)->second.end > address) --window;
    for (; window != windows_.end() && window->first < address + size; ++window) {
      const Bytes first = std::max(window->first, address);
      visit(first, std::min(window->second.end, address + size), window->second.memory + (first - window->first));
    }
  }

  std::map<Bytes, Window> windows_;  // by first address; disjoint
};

}  // namespace tidepool
