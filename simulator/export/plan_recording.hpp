// A plan as a recording of a profiler: each allocation with its time and address, and each op that ran.
#pragma once

#include "simulator/plan_file.hpp"
#include "traces/export/recording.hpp"

namespace tidepool {

/// Executes a plan on its simulated machine and records: every place that a version gets, loses or takes over by an
/// update in place; every segment; every run; every copy on the lanes "h2d" and "d2h". Addresses are offsets from
/// kSimulatedBase. A pool without addresses gives none.
/// @throws PlanError  as replay() does
Recording recording_of(const Trace& trace, const PlanFile& file);

/// Address of the first byte of a simulated device. It is far from 0, which other programs take for no address.
inline constexpr std::int64_t kSimulatedBase = std::int64_t{1} << 40;

}  // namespace tidepool
