// Selection of gaps for the peaks of the load, by price.
#pragma once

#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/selection.hpp"

namespace tidepool {

/// For the slot that is furthest above its limit, picks the cheapest gap that contains it. Repeats until no slot is
/// above its limit, or no gap contains the slot. Every pick is needed at a peak, so no copy is spent on slots that
/// other picks relieve anyway.
///
/// Whole gaps free more bytes than needed. So gaps with waits are given up again, the most expensive first, if the
/// surplus, gaps without waits, or a cheaper set of gaps can replace them.
/// @param prices  by gap, from copy_prices()
/// O(gaps (log gaps + log slots) + picks log slots); giving up stops after a few million comparisons.
Selection select_for_peaks(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<double>& prices,
                           const SlotLimits& limits);

}  // namespace tidepool
