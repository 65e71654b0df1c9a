// Shares of each copy in the solution of the fluid linear program.
#pragma once

#include <vector>

#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// By gap: the share of it that the best fluid plan of a repeated step copies (see fluid_bound); ties by the time of
/// absence. Empty for several streams, and for so many ops and gaps that the program would take seconds.
std::vector<double> fluid_shares(const Planning& planning);

}  // namespace tidepool
