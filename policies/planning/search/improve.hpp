// Improving a plan by small changes.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// Changes a selection one gap at a time, schedules it anew and judges it, until the trials are over. Where more would
/// be there at some slot than the capacity, a gap that lasts there is copied or dropped; elsewhere one is kept, or
/// dropped instead of copied, or copied instead of dropped. What is no worse is kept. What makes room on demand stays
/// what it is in `start`. Deterministic for a seed.
/// @param costs  as of Reruns::costs(); kImpossible for what may not be dropped
void improve(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, const GapPlan& start,
             std::uint64_t seed);

/// The same `tries` times without judging: by what is run again and what schedules hold above the capacity. Many times
/// faster; what it returns is worth a trial.
MixedSelection improve_by_estimate(const Planning& planning, const std::vector<Nanos>& costs, MixedSelection start,
                                   CopyOut copies, std::int64_t tries, std::uint64_t seed);

}  // namespace tidepool
