// The excess of a step's load over its limits, while gaps are subtracted one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/range_tree.hpp"
#include "policies/planning/gaps/step_circle.hpp"

namespace tidepool {

/// Live bytes by slot, as in LoadArea, compared with limits. Bytes are subtracted and never added back. So a slot that
/// no longer exceeds its limit is not visited again, and slots that never exceed it are left out. All operations are
/// O(log slots), take() amortised over the slots.
class ExcessTree {
 public:
  enum class Asked : std::uint8_t { kWhether, kHowMuch };
  /// @param limits  by slot
  /// @param asked   kHowMuch if excess() will be called
  ExcessTree(const StepCircle& circle, const std::vector<Bytes>& limits, Asked asked = Asked::kWhether);

  /// Subtracts the gap's bytes from the slots after its release and before its due op.
  void take(const Gap& gap);
  /// Whether the load is above the limit somewhere while the gap lasts.
  bool relieves(const Gap& gap) const;
  /// Integral over the gap of the bytes above the limit, in bytes * ns.
  double excess(const Gap& gap) const;
  /// Whether the load is nowhere above its limit.
  bool fits() const { return !nodes_[1].any(); }

 private:
  static constexpr Bytes kNone{std::numeric_limits<std::int64_t>::max()};
  /// Values over those slots below this node that exceed their limits.
  struct Node {
    Bytes least = kNone;  ///< least excess of a slot
    Bytes taken;          ///< subtracted from all of them, but not from the nodes below
    bool any() const { return least != kNone; }
  };
  struct Area {
    double bytes_ns = 0, ns = 0;  ///< integral of the excess, and total time, over these slots
  };
  /// A node and the leaves [begin, end) below it.
  struct Place {
    std::size_t node, begin, end;
    Place left() const { return {2 * node, begin, begin + (end - begin) / 2}; }
    Place right() const { return {2 * node + 1, begin + (end - begin) / 2, end}; }
    bool apart(std::size_t first, std::size_t last) const { return last <= begin || end <= first; }
    bool within(std::size_t first, std::size_t last) const { return first <= begin && end <= last; }
  };
  Place all() const { return {1, 0, nodes_.size() / 2}; }
  template <class Visit>
  void for_each_run_of_leaves(const Gap& gap, Visit visit) const;
  void take_off(std::size_t node, Bytes bytes);
  void sum_up(std::size_t node);
  void take(const Place& at, std::size_t first, std::size_t last, Bytes bytes);
  bool any(const Place& at, std::size_t first, std::size_t last) const;
  double area(const Place& at, std::size_t first, std::size_t last, Bytes taken) const;

  std::vector<std::uint32_t> leaf_;  // by slot, and after the last: the number of earlier slots above their limits
  std::vector<Node> nodes_;          // node i has the children 2 i and 2 i + 1
  std::vector<Area> areas_;          // by node; empty unless kHowMuch was asked
};

}  // namespace tidepool
