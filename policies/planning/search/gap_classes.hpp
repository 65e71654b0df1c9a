// The absences of a step in classes: what the same ops of different layers leave idle.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/step_circle.hpp"
#include "simulator/structure/structure.hpp"

namespace tidepool {

/// Gaps between like ops, of what like ops make, of one size, that all cross the boundary or all do not. In a stack of
/// like layers what the first layer leaves idle is needed last: the members of a class lie one in another.
struct GapClass {
  std::vector<std::uint32_t> members;  ///< gaps, the one that lasts longest first; of several the one released first
};

/// All classes, in the order of their first members in `gaps`. Where nothing repeats every gap is a class of its own.
/// O(gaps log gaps).
std::vector<GapClass> gap_classes(const Structure& structure, const StepCircle& circle, const std::vector<Gap>& gaps);

}  // namespace tidepool
