// Sums of ranges added to slots, and where they are large.
#pragma once

#include <cstddef>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

/// Calls visit(first, last) for the ranges of slots that the positions [first, last) of a circle stand for; there are
/// at most as many as slots.
template <class Visit>
void for_each_range(std::size_t slots, std::size_t first, std::size_t last, Visit visit) {
  if (first < slots && first < last) visit(first, last < slots ? last : slots);
  if (first < last && last > slots) visit(first < slots ? 0 : first - slots, last - slots);
}

/// A number of bytes for every slot. Ranges of slots are half open; everything is O(log slots).
class RangeTree {
 public:
  explicit RangeTree(const std::vector<Bytes>& slots);

  std::size_t size() const { return slots_; }
  void add(std::size_t first, std::size_t last, Bytes bytes) {
    if (first < last) add(1, 0, width_, first, last, bytes);
  }
  /// The most in any slot of a range; less than anything that was added for none.
  Bytes most(std::size_t first, std::size_t last) const { return most(1, 0, width_, first, last); }
  Bytes most() const { return node_[1].most; }
  /// One behind the last slot of a range that has more than `bytes`; `first` if there is none.
  std::size_t behind_last_above(std::size_t first, std::size_t last, Bytes bytes) const;

 private:
  struct Node {
    Bytes most, added;  // in the slots below; and what was added to all of them, which `most` counts
  };
  void add(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last, Bytes bytes);
  Bytes most(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last) const;
  std::size_t last_above(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
                         Bytes bytes) const;

  std::size_t slots_, width_ = 1;
  std::vector<Node> node_;  // node i has the children 2 i and 2 i + 1
};

}  // namespace tidepool
