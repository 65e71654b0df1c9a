// Improvement of a plan by small changes.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// Changes a selection one gap at a time, schedules it again and judges it, until the trials are over. If a slot
/// exceeds the capacity, a gap that contains it is copied or dropped; otherwise a used gap is kept, or its treatment
/// changes between copied and dropped. A change stays if the plan is not worse. Shortages are answered as in `start`.
/// Deterministic for a seed.
/// @param costs  as in Reruns::costs(); kImpossible for gaps that may not be dropped
void improve(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, const GapPlan& start,
             std::uint64_t seed);

/// The same for `tries` changes, but without runs: plans are judged by their reruns and by the bytes of the schedule
/// above the capacity. Many times faster; the result is worth a trial.
MixedSelection improve_by_estimate(const Planning& planning, const std::vector<Nanos>& costs, MixedSelection start,
                                   CopyOut copies, std::int64_t tries, std::uint64_t seed);

}  // namespace tidepool
