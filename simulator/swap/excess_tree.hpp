// Where the load of a step is above its limits, while gaps are taken away from it one by one.
#pragma once

#include <utility>
#include <vector>

#include "simulator/swap/gap.hpp"
#include "simulator/swap/range_tree.hpp"
#include "simulator/swap/step_circle.hpp"

namespace tidepool {

/// Answers what LoadCurve does, but for areas, in O(log slots).
class ExcessTree {
 public:
  /// @param limits  by slot
  ExcessTree(const StepCircle& circle, std::vector<Bytes> limits) : excess_{above(circle, std::move(limits))} {}

  /// Takes the gap's bytes off the slots behind its release and in front of its due op.
  void take(const Gap& gap) {
    for_each_range(excess_.size(), gap.release + std::size_t{1}, gap.due,
                   [&](std::size_t first, std::size_t last) { excess_.add(first, last, -gap.size); });
  }
  /// Whether the load is above the limit somewhere while the gap lasts.
  bool relieves(const Gap& gap) const {
    bool above = false;
    for_each_range(excess_.size(), gap.release + std::size_t{1}, gap.due,
                   [&](std::size_t first, std::size_t last) { above |= excess_.most(first, last) > Bytes{}; });
    return above;
  }
  /// Whether the load is nowhere above its limit.
  bool fits() const { return excess_.most() <= Bytes{}; }

 private:
  static std::vector<Bytes> above(const StepCircle& circle, std::vector<Bytes> limits) {
    for (std::size_t k = 0; k < limits.size(); ++k) limits[k] = circle.load[k] - limits[k];
    return limits;
  }
  RangeTree excess_;
};

}  // namespace tidepool
