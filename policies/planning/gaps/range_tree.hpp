// Bytes by slot, with additions to ranges and searches for the largest number.
#pragma once

#include <cstddef>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// Calls visit(first, last) for the ranges of slots that the positions [first, last) of a circle cover: one, or two if
/// they pass its end, or none if first = last. They are at most one full circle; `last` is at most 2 * `slots`.
template <class Visit>
void for_each_range(std::size_t slots, std::size_t first, std::size_t last, Visit visit) {
  if (first < slots && first < last) visit(first, last < slots ? last : slots);
  if (first < last && last > slots) visit(first < slots ? 0 : first - slots, last - slots);
}

/// A number of bytes for each slot. Ranges of slots are half open; all operations are O(log slots).
class RangeTree {
 public:
  explicit RangeTree(const std::vector<Bytes>& slots);

  std::size_t size() const { return slots_; }
  void add(std::size_t first, std::size_t last, Bytes bytes) {
    if (first < last) add(1, 0, width_, first, last, bytes);
  }
  /// The largest number in a range; for an empty range, less than the number of any slot.
  Bytes most(std::size_t first, std::size_t last) const { return most(1, 0, width_, first, last); }
  Bytes most() const { return node_[1].most; }
  /// One past the last slot in [first, last) whose number is above `bytes`; `first` if there is none.
  std::size_t behind_last_above(std::size_t first, std::size_t last, Bytes bytes) const;

 private:
  struct Node {
    Bytes most, added;  // most: largest in the slots below; added: added to all of them, included in `most`
  };
  void add(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last, Bytes bytes);
  Bytes most(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last) const;
  std::size_t last_above(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
                         Bytes bytes) const;

  std::size_t slots_, width_ = 1;
  std::vector<Node> node_;  // node i has the children 2 i and 2 i + 1
};

}  // namespace tidepool
