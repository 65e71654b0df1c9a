// Gaps that may still be picked, with the preferred gap of each slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "policies/planning/gaps/gap.hpp"

namespace tidepool {

/// Gaps ranked by preference, found by their slots. A gap is open until it is closed. Each node of a segment tree lists
/// gaps that cover all of the node's slots. O(gaps log slots) memory.
class OpenGaps {
 public:
  /// @param gaps   must outlive this, and so must `order`
  /// @param order  indices into `gaps`, preferred first; the rank of a gap is its position in this list
  /// @param slots  number of slots of the step
  OpenGaps(const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& order, std::size_t slots);

  void close(std::uint32_t rank) { closed_[rank] = true; }
  /// Opens a closed gap. O(log slots * log gaps).
  void open_again(std::uint32_t rank);
  /// The rank of the first open gap of a slot, if it has one. O(log slots), amortised over closings and openings.
  std::optional<std::uint32_t> first_in(std::size_t slot);
  /// Calls visit(rank) for all open gaps of a slot, in any order.
  template <class Visit>
  void for_each_in(std::size_t slot, Visit visit) const {
    for (std::size_t node = slot + width_; node > 0; node /= 2)
      for (std::size_t i = head_[node]; i < end_[node]; ++i)
        if (!closed_[ranks_[i]]) visit(ranks_[i]);
  }

 private:
  /// Calls visit(node) for the smallest set of nodes that covers a gap's slots.
  template <class Visit>
  void for_each_node(const Gap& gap, Visit visit) const;

  const std::vector<Gap>& gaps_;
  const std::vector<std::uint32_t>& order_;
  std::size_t slots_, width_ = 1;
  std::vector<std::uint32_t> ranks_;             // of all nodes, one node after the other; ascending in each
  std::vector<std::size_t> begin_, head_, end_;  // by node: positions in ranks_; gaps before the head are closed
  std::vector<bool> closed_;                     // by rank
};

}  // namespace tidepool
