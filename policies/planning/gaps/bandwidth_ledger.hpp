// Bandwidth that one direction of the link has left in each slot of a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/planning/gaps/step_circle.hpp"
#include "traces/quantity.hpp"

namespace tidepool {

/// Bytes that a link can move in each slot, less what has been reserved. Questions are O(log slots), reservations
/// O(slots). Nothing goes round the circle: what does not fit ends in the last slot or begins in the first.
/// Source: the bandwidth estimation of G10 (Zhang et al., MICRO 2023; its code, src/analysis.cc).
class BandwidthLedger {
 public:
  /// @param circle  of at least one slot; outlives nothing: only its times are read
  BandwidthLedger(const StepCircle& circle, BytesPerSecond rate);

  /// The slot in which the last of `size` bytes have moved, if they move from slot `from` on.
  std::size_t ends(std::size_t from, Bytes size) const;
  /// The last slot in which `size` bytes must begin to move if all have moved when slot `before` begins.
  std::size_t begins(std::size_t before, Bytes size) const;
  /// Takes what `size` bytes need from slot `from` on.
  void reserve(std::size_t from, Bytes size);
  Bytes left(std::size_t slot) const { return before_[slot + 1] - before_[slot]; }

 private:
  std::vector<Bytes> before_;  // by slot: what is left in those before it
};

}  // namespace tidepool
