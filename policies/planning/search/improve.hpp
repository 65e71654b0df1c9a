// Improvement of a plan by small changes.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// Changes a selection one gap at a time, schedules it again and judges it, until the trials are over. If a slot
/// exceeds the capacity, a gap that contains it is copied or dropped; otherwise a gap is kept, or dropped instead of
/// copied, or copied instead of dropped. A change that is not worse stays. The answer to shortages is that of `start`.
/// Deterministic for a seed.
/// @param costs  as in Reruns::costs(); kImpossible for gaps that may not be dropped
void improve(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, const GapPlan& start,
             std::uint64_t seed);

/// The same, `tries` times, without runs: judged by the reruns and by the bytes of the schedule above the capacity.
/// Many times faster; the result is worth a trial.
MixedSelection improve_by_estimate(const Planning& planning, const std::vector<Nanos>& costs, MixedSelection start,
                                   CopyOut copies, std::int64_t tries, std::uint64_t seed);

}  // namespace tidepool
