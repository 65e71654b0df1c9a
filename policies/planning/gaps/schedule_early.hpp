// Scheduling of swap-ins as early as memory allows.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/schedule.hpp"
#include "policies/planning/gaps/step_circle.hpp"

namespace tidepool {

/// Issues each swap-in as soon as memory has room for its bytes from then on, in the order of due ops. Swap-outs begin
/// at the release and are assumed to take no time. No gap may cross the boundary.
/// @param load   by slot: live bytes without the content of the swapped gaps
/// @param limit  of the load
/// @param from   no swap-in is issued before an op that is earlier than this one
/// @return  the plan in the order of due ops. O(slots of all gaps).
std::vector<PlannedGap> schedule_early(const std::vector<Gap>& gaps, std::vector<std::uint32_t> swapped,
                                       std::vector<Bytes> load, Bytes limit, std::uint32_t from = 0);

}  // namespace tidepool
