// Bytes by slot of a circle: additions to ranges of slots, and the last slot above a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// A segment tree over the slots of a repeated step. Position p names slot p modulo the number of slots. All operations
/// are O(log slots).
class SlotTree {
 public:
  void reset(std::span<const Bytes> load);
  /// Adds bytes to the slots of `count` positions from `first` on; to each slot once if these are all slots or more.
  void add(std::int64_t first, std::int64_t count, Bytes bytes);
  /// The last position in [first, last) whose slot has more than `limit`; first - 1 if there is none. The range has at
  /// most two turns.
  std::int64_t last_above(std::int64_t first, std::int64_t last, Bytes limit) const;

 private:
  struct Node {
    Bytes most, added;
  };
  void add(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last, Bytes bytes);
  std::int64_t last_above(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
                          Bytes limit) const;

  std::size_t slots_ = 0, leaves_ = 1;
  std::vector<Node> nodes_;  // node i has the children 2 i and 2 i + 1
};

}  // namespace tidepool
