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

/// The same for `tries` changes, but without runs: plans are judged by the time of reruns and waits in the schedule,
/// and by its bytes above the capacity. Many times faster; the result is worth a trial.
MixedSelection improve_by_estimate(const Planning& planning, const std::vector<Nanos>& costs, MixedSelection start,
                                   CopyOut copies, std::int64_t tries, std::uint64_t seed);

}  // namespace tidepool
