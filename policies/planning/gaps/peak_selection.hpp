// Selection of what peaks need, by prices.
#pragma once

#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/selection.hpp"

namespace tidepool {

/// Picks for the slot that is furthest above its limit the gap with the least price that lasts there, until the load is
/// nowhere above the limits or nothing lasts where it is. What is picked is needed at a peak, so that no copy is spent
/// on slots that others relieve anyway.
///
/// Whole gaps leave more room than is needed. So each that is waited for is given up again, the dearest first, where
/// that room, gaps that nobody waits for, or some that cost less in all make up for it.
/// @param prices  by gap, as of copy_prices()
/// O(gaps (log gaps + log slots) + picks log slots); giving up ends behind a few million looks at others.
Selection select_for_peaks(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<double>& prices,
                           const SlotLimits& limits);

}  // namespace tidepool
