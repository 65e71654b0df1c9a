// Gaps that may still be picked, cheapest first wherever they last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "policies/planning/gaps/gap.hpp"

namespace tidepool {

/// Ranks of gaps in an order of preference, each open until it is closed, and found by the slots during which it lasts:
/// a segment tree whose nodes list the gaps that last all through them. O(gaps log slots) of memory.
class OpenGaps {
 public:
  /// @param order  the gaps, preferred first
  /// @param slots  of the step
  OpenGaps(const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& order, std::size_t slots);

  void close(std::uint32_t rank) { closed_[rank] = true; }
  /// O(log slots * log gaps).
  void open_again(std::uint32_t rank);
  /// The first open one that lasts in a slot. O(log slots), amortised over those closed and opened.
  std::optional<std::uint32_t> first_in(std::size_t slot);
  /// Calls visit(rank) for all of them, in no order.
  template <class Visit>
  void for_each_in(std::size_t slot, Visit visit) const {
    for (std::size_t node = slot + width_; node > 0; node /= 2)
      for (std::size_t i = head_[node]; i < end_[node]; ++i)
        if (!closed_[ranks_[i]]) visit(ranks_[i]);
  }

 private:
  /// Calls visit(node) for the fewest nodes that are the slots of a gap.
  template <class Visit>
  void for_each_node(const Gap& gap, Visit visit) const;

  const std::vector<Gap>& gaps_;
  const std::vector<std::uint32_t>& order_;
  std::size_t slots_, width_ = 1;
  std::vector<std::uint32_t> ranks_;             // of one node behind those of another, ascending
  std::vector<std::size_t> begin_, head_, end_;  // by node: in ranks_; those in front of the head are closed
  std::vector<bool> closed_;                     // by rank
};

}  // namespace tidepool
