// Selection of gaps for the peaks of the load, by price.
#pragma once

#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/selection.hpp"

namespace tidepool {

/// For the slot that is furthest above its limit, picks the cheapest gap that contains it; without such a gap, the slot
/// is given up. Repeats until no other slot is above its limit. Every pick is needed at a peak, so no copy is spent on
/// slots that other picks relieve anyway.
///
/// A pick frees all bytes of its buffer, so the picks together free more than is needed. Therefore picks whose copies
/// make ops wait are tried again, the most expensive first. Such a pick is given up if the others are enough without
/// it, or if gaps whose copies make no op wait, or a cheaper set of gaps, can replace it.
/// @param prices  by gap, from copy_prices()
/// O(gaps (log gaps + log slots) + n log^2 slots) for n picks and slots that are given up. Trying picks again stops
/// after a few million comparisons.
Selection select_for_peaks(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<double>& prices,
                           const SlotLimits& limits);

}  // namespace tidepool
