// Planning again for what the last plan led to.
#pragma once

#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/trials.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Ours, for steps that must wait for copies: looks at the run of the best draft so far, selects anew by what copies
/// cost where ops waited for them (copy_prices), for the peaks (select_for_peaks), and schedules that for ops that
/// start when they did in that run: what is under way while ops wait is in nobody's way. Again from the best of these,
/// as long as it gets better and there are trials.
/// @param machine  what copies are planned with; that of the trials is what they are judged with
void try_feedback(Trials& trials, const Trace& trace, const StepCircle& circle, const std::vector<Gap>& gaps,
                  const Machine& machine, Bytes capacity, std::int64_t tries);

}  // namespace tidepool
