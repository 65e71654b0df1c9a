// Improvement of a plan by small changes.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// Changes the treatment of one or two gaps at random (see GapChanges::changed()), schedules the selection again and
/// judges it, until the trials are over or 1,000 changes in a row give no new plan. Gaps that contain a slot above the
/// capacity are preferred. A change stays if the plan is not worse. Shortages are answered as in `start`.
/// Deterministic for a seed.
/// @param costs  as in Reruns::costs(); kImpossible for gaps that may not be dropped
void improve(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, const GapPlan& start,
             std::uint64_t seed);

}  // namespace tidepool
