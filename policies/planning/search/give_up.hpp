// Removal of copies that a plan does not need.
#pragma once

#include <cstdint>

#include "policies/planning/gaps/trials.hpp"
#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// Whole tensors free more bytes than needed, so some copies of a plan may be unnecessary. Schedules and runs the plan
/// without each of its copies in turn, smallest first; a copy stays removed if the run is faster. The result is judged
/// as a trial, even if no tries are left. Copies that take less than 1/20,000 of the step are not tried.
/// @param planning  with the op starts of the run of `start`
/// @param most      the most copies to try. Their runs, and one run of `start`, are not trials
void give_up_copies(Trials& trials, const Planning& planning, const GapPlan& start, std::int64_t most);

}  // namespace tidepool
