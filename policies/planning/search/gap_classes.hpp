// Classes of similar gaps of a step: gaps of the same ops in different layers.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/step_circle.hpp"
#include "traces/step/structure.hpp"

namespace tidepool {

/// Gaps of equal size between similar ops, for versions with similar producers. All of them cross the boundary, or none
/// does. In a stack of equal layers, the first layer's version is needed last, so the members of a class are nested.
struct GapClass {
  std::vector<std::uint32_t> members;  ///< gaps, the longest first; ties: the earliest release first
};

/// All classes, in the order of their first members in `gaps`. If nothing repeats, every gap is its own class.
/// O(gaps log gaps).
std::vector<GapClass> gap_classes(const Structure& structure, const StepCircle& circle, const std::vector<Gap>& gaps);

}  // namespace tidepool
