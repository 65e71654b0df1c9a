// Where the load of a step is above its limits, while gaps are taken away from it one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/swap/gap.hpp"
#include "simulator/swap/range_tree.hpp"
#include "simulator/swap/step_circle.hpp"

namespace tidepool {

/// Answers what LoadCurve does of its limits. Nothing that is taken comes back, so a slot that is no longer above its
/// limit is done with: everything is O(log slots), take() amortised over the slots.
class ExcessTree {
 public:
  /// @param limits  by slot
  ExcessTree(const StepCircle& circle, const std::vector<Bytes>& limits);

  /// Takes the gap's bytes off the slots behind its release and in front of its due op.
  void take(const Gap& gap);
  /// Whether the load is above the limit somewhere while the gap lasts.
  bool relieves(const Gap& gap) const;
  /// Integral of what is above the limit over the gap, in bytes * ns.
  double excess(const Gap& gap) const;
  /// Whether the load is nowhere above its limit.
  bool fits() const { return nodes_[1].slots == 0; }

 private:
  /// Of the slots below that are above their limits.
  struct Node {
    double area = 0;  ///< bytes * ns above
    double time = 0;  ///< ns
    Bytes least;      ///< above
    Bytes taken;      ///< off all of them, of which the nodes below do not know
    std::uint32_t slots = 0;
  };
  /// A node and the slots [begin, end) below it.
  struct Place {
    std::size_t node, begin, end;
    Place left() const { return {2 * node, begin, begin + (end - begin) / 2}; }
    Place right() const { return {2 * node + 1, begin + (end - begin) / 2, end}; }
    bool apart(std::size_t first, std::size_t last) const { return last <= begin || end <= first; }
    bool within(std::size_t first, std::size_t last) const { return first <= begin && end <= last; }
  };
  Place all() const { return {1, 0, nodes_.size() / 2}; }
  void take_off(Node& node, Bytes bytes);
  void sum_up(std::size_t node);
  void take(const Place& at, std::size_t first, std::size_t last, Bytes bytes);
  bool any(const Place& at, std::size_t first, std::size_t last) const;
  double area(const Place& at, std::size_t first, std::size_t last, Bytes taken) const;

  std::size_t slots_;
  std::vector<Node> nodes_;  // node i has the children 2 i and 2 i + 1
};

}  // namespace tidepool
