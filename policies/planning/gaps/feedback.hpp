// Plans made from the result of the last plan.
#pragma once

#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/trials.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Tidepool's own planner for steps that must wait for copies. It takes the run of the best draft so far and selects
/// gaps for the peaks (select_for_peaks) by the price of copies that ops waited for (copy_prices). It schedules them
/// for the op starts of that run, in which a copy during a wait delays no op. It repeats this from the best plan of
/// the last round, until two rounds in a row are each no better than the round before, or the tries are spent.
/// @param machine  for the times of planned copies; drafts are judged on the machine of the trials
/// @param tries    no round begins after so many trials
void try_feedback(Trials& trials, const Trace& trace, const StepCircle& circle, const std::vector<Gap>& gaps,
                  const Machine& machine, Bytes capacity, std::int64_t tries);

}  // namespace tidepool
