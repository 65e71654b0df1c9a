// The integral of a step's load over time, less the bytes of selected gaps.
#pragma once

#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/step_circle.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

/// Live bytes by slot, integrated over time. The bytes of each gap given to take() are absent from the slot after its
/// release to the slot before its due op, as if copies took no time. All operations are O(log slots).
class LoadArea {
 public:
  /// @param circle  must outlive this
  explicit LoadArea(const StepCircle& circle);

  /// Subtracts the gap's bytes from its slots.
  void take(const Gap& gap);
  /// Integral of the load over the gap, in bytes * ns.
  double of(const Gap& gap) const;

 private:
  /// Bytes subtracted from a slot onwards, and their product with the slot's start time.
  struct Taken {
    Int128 bytes = 0, bytes_ns = 0;
  };
  void take_from(std::size_t slot, Bytes bytes);
  Int128 up_to(std::size_t slot) const;

  const StepCircle& circle_;
  std::vector<Int128> before_;  // by slot, and after the last: integral of the load before it
  std::vector<Taken> taken_;    // a Fenwick tree over slots, counted from 1
};

}  // namespace tidepool
