// Shares of each copy in the solution of the fluid linear program.
#pragma once

#include <vector>

#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// By gap: which share of it the best fluid plan of a repeated step copies (see fluid_bound), ties by the time that it
/// is away. Empty where there is none: of several streams, or of so many ops and gaps that the program takes seconds.
std::vector<double> fluid_shares(const Planning& planning);

}  // namespace tidepool
