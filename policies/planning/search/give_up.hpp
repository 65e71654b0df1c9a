// Doing without copies that a plan does not need.
#pragma once

#include <cstdint>

#include "policies/planning/gaps/trials.hpp"
#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// Ours: whole tensors leave more room than is needed, and others may fill it. Schedules a plan without each of its
/// copies in turn, the smallest first, and runs that; what is faster without it stays without. What comes out is a
/// trial, also where none are left. Copies that take less than a twenty thousandth of the step are not tried.
/// @param planning  with ops that start when they did in the run of `start`
/// @param most      how many plans are run; they are no trials
void give_up_copies(Trials& trials, const Planning& planning, const GapPlan& start, std::int64_t most);

}  // namespace tidepool
