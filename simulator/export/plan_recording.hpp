// A plan as a run that a profiler could have recorded: which memory was given when and where, and what ran.
#pragma once

#include "simulator/plan_file.hpp"
#include "traces/export/recording.hpp"

namespace tidepool {

/// Executes a plan on its simulated machine and writes down what happens: every place that a version is given, moved to
/// by an update in place or loses, every segment, every run, every copy on the lanes "h2d" and "d2h". Addresses are
/// offsets from kSimulatedBase; on a pool without addresses there are none.
/// @throws PlanError  as replay() does
Recording recording_of(const Trace& trace, const PlanFile& file);

/// Where the first byte of a simulated device lies: far from 0, which is no address to other programs.
inline constexpr std::int64_t kSimulatedBase = std::int64_t{1} << 40;

}  // namespace tidepool
