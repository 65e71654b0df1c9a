// The integral of a step's load, less what a growing selection of gaps takes away from it.
#pragma once

#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/step_circle.hpp"
#include "traces/quantity.hpp"

namespace tidepool {

/// Bytes live by slot while selected gaps are absent from the slot behind their release to the one before their due op,
/// as if copies took no time, integrated over time. Everything is O(log slots).
class LoadArea {
 public:
  explicit LoadArea(const StepCircle& circle);

  /// Takes the gap's bytes off the slots during which it lasts.
  void take(const Gap& gap);
  /// Integral of the load over the gap, in bytes * ns.
  double of(const Gap& gap) const;

 private:
  /// Bytes that are taken off from a slot on, and the product with the time at which it begins.
  struct Taken {
    Int128 bytes = 0, bytes_ns = 0;
  };
  void take_from(std::size_t slot, Bytes bytes);
  Int128 up_to(std::size_t slot) const;

  const StepCircle& circle_;
  std::vector<Int128> before_;  // by slot, and behind the last: of the load in front of it
  std::vector<Taken> taken_;    // a Fenwick tree over slots, counted from 1
};

}  // namespace tidepool
