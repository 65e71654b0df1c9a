// Drops chosen by the prices of memory in the fluid linear program, and copies by its solution.
#pragma once

#include <vector>

#include "policies/planning/gaps/trials.hpp"
#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// Takes some drops, and the copies of the best fluid plan with these drops (see fluid_copies). Copies are scheduled
/// for the start times of that plan. Then changes the drops by whole classes of similar gaps, or parts of them. The
/// duals of the fluid program price a byte in memory at each op: a gap saves its bytes times the prices while it lasts,
/// and costs its reruns. A change that makes the fluid plan faster is kept.
///
/// Does nothing unless the step is repeated and has one stream. Cost: `programs` linear programs at most, and up to 24
/// trials for each of two fluid plans that may beat the best plan.
/// @param costs    by gap, from Reruns::costs()
/// @param dropped  gaps
void try_fluid_drops(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs,
                     const std::vector<std::uint32_t>& dropped, int programs);

}  // namespace tidepool
