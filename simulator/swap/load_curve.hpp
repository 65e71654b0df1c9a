// The load of a step, less what a growing selection of gaps takes away from it.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/swap/gap.hpp"
#include "simulator/swap/step_circle.hpp"

namespace tidepool {

/// Bytes live by slot while selected gaps are absent from the slot behind their release to the one before their due op,
/// as if copies took no time. take() is O(slots); what is asked about a gap is O(1).
class LoadCurve {
 public:
  /// @param limit  by slot: what the load is compared with
  LoadCurve(const StepCircle& circle, std::vector<Bytes> limit);

  void take(const Gap& gap);

  Bytes peak() const;
  /// Whether the load is nowhere above the limit.
  bool fits() const { return over_.back() == 0; }
  const std::vector<Bytes>& load() const { return load_; }
  /// Whether the load is above the limit somewhere while the gap lasts.
  bool relieves(const Gap& gap) const { return sum(over_, gap) > 0; }
  /// Integral of the load over the gap, in bytes * ns.
  double area(const Gap& gap) const { return sum(area_, gap); }
  /// Integral of what is above the limit over the gap, in bytes * ns.
  double excess(const Gap& gap) const { return sum(excess_, gap); }

 private:
  double sum(const std::vector<double>& prefix, const Gap& gap) const;
  void add_up();

  const StepCircle& circle_;
  std::vector<Bytes> limit_, load_;
  std::vector<double> over_, area_, excess_;  // prefix sums over slots
};

}  // namespace tidepool
