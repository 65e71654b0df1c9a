// The steps of a device program whose ends decide when another step may begin.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "validator/execution/device_program.hpp"

namespace tidepool {

/// By step: the step before it on its stream, and the steps that the stream has waited for since then, at most one of
/// each lane. When all of them have ended, the step may begin.
class Predecessors {
 public:
  /// O(commands * lanes).
  explicit Predecessors(const DeviceProgram& program);

  std::span<const std::uint32_t> of(std::uint32_t step) const {
    return std::span{steps_}.subspan(first_[step], first_[step + 1] - first_[step]);
  }
  /// Predecessors of all steps, one step after the other, and the index of the first predecessor of a step.
  const std::vector<std::uint32_t>& all() const { return steps_; }
  std::uint32_t first(std::uint32_t step) const { return first_[step]; }

 private:
  std::vector<std::uint32_t> steps_, first_;
};

}  // namespace tidepool
