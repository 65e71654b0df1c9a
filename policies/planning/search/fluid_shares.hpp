// The share of each gap that is copied in the solution of the fluid linear program.
#pragma once

#include <vector>

#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// By gap: the share of its bytes that the best fluid plan of a repeated step copies (see fluid_bound). Ties are broken
/// by the length of the gap. Empty for several streams, and if there are so many ops and gaps that the linear program
/// would take seconds.
std::vector<double> fluid_shares(const Planning& planning);

}  // namespace tidepool
