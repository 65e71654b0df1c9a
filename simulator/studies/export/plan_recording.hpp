// Conversion of a plan to a profiler's recording: each allocation with its time and address, and each run of an op.
#pragma once

#include "simulator/plan_file.hpp"
#include "traces/export/recording.hpp"

namespace tidepool {

/// Executes a plan on its simulated machine and records: every place that a version gets or loses, but no update in
/// place, since it keeps the place; every segment; every run; every copy on the lanes "h2d" and "d2h". Addresses are
/// kSimulatedBase plus the offset. If the pool gives no addresses, the recording has none.
/// @throws PlanError  as replay() does
Recording recording_of(const Trace& trace, const PlanFile& file);

/// Address of the first byte of a simulated device. It is not 0, because other programs read address 0 as none.
inline constexpr std::int64_t kSimulatedBase = std::int64_t{1} << 40;

}  // namespace tidepool
