// Plans that copy and do not recompute: gaps selected by every score and by the shares of the best fluid plan.
#pragma once

#include "policies/planning/gaps/trials.hpp"
#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// Tries selections by each score, with some slack of memory; then by the shares of the fluid plan (see fluid_bound),
/// and by feed_back().
/// @param largest  bytes of the largest gap
void try_copies(Trials& trials, const Planning& planning, Bytes largest);

/// Selects gaps again by the prices of copies that the best plan waited for (see try_feedback), with half of the tries.
void feed_back(Trials& trials, const Planning& planning);

}  // namespace tidepool
