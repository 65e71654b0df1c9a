// Scheduling copies back as early as there is room.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/schedule.hpp"
#include "policies/planning/gaps/step_circle.hpp"

namespace tidepool {

/// Issues each copy back as early as there is room for it from then on, what is due first before the others; copies out
/// begin at the release and are taken to be done at once. None of the gaps may cross the boundary.
/// @param load   by slot: what is live beside the swapped gaps while they are absent
/// @param limit  of the load
/// @param from   no copy back is issued in front of an earlier op
/// In the order of due ops, first first. O(slots that the gaps last for).
std::vector<PlannedGap> schedule_early(const std::vector<Gap>& gaps, std::vector<std::uint32_t> swapped,
                                       std::vector<Bytes> load, Bytes limit, std::uint32_t from = 0);

}  // namespace tidepool
