// What a plan does with each idle interval of a step.
#pragma once

#include <vector>

#include "policies/planning/search/gap_changes.hpp"

namespace tidepool {

/// By idle interval of StepModel::gaps.
using Treatments = std::vector<How>;

}  // namespace tidepool
