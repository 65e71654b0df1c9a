// Plans that copy and recompute: gaps selected by prices of the links.
#pragma once

#include <vector>

#include "policies/planning/gaps/trials.hpp"
#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// Tries prices of the links (see select_by_price): each of a coarse grid, then the neighbours of the best, ever
/// closer.
/// @param costs    by gap, from Reruns::costs()
/// @param largest  bytes of the largest gap
void try_mixed(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, Bytes largest);

}  // namespace tidepool
