// A ledger of the free bandwidth of one direction of the link, slot by slot of a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/planning/gaps/step_circle.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

/// Bytes that a link can move in each slot, less the reserved ones. Queries are O(log slots), reservations O(slots).
/// Copies do not cross the boundary of the step: a copy that is too long ends in the last slot, or begins in the first.
/// Source: the bandwidth estimation of G10 (Zhang et al., MICRO 2023; its code, src/analysis.cc).
class BandwidthLedger {
 public:
  /// @param circle  of at least one slot. Only its start times are read, and only by the constructor
  BandwidthLedger(const StepCircle& circle, BytesPerSecond rate);

  /// The slot in which the last of `size` bytes moves, if they move from slot `from` on.
  std::size_t ends(std::size_t from, Bytes size) const;
  /// The latest slot in which `size` bytes can begin to move so that all have moved when slot `before` begins.
  std::size_t begins(std::size_t before, Bytes size) const;
  /// Reserves the bandwidth of `size` bytes from slot `from` on.
  void reserve(std::size_t from, Bytes size);
  /// Bytes of a slot that are not reserved.
  Bytes left(std::size_t slot) const { return before_[slot + 1] - before_[slot]; }

 private:
  std::vector<Bytes> before_;  // by slot: free bytes in all slots before it
};

}  // namespace tidepool
