// Ranks of a job that do the same work.
#pragma once

#include <cstddef>
#include <vector>

#include "traces/job/job.hpp"

namespace tidepool {

/// Whether two ranks do the same work: their traces have equal ops (names, modules, kinds, phases, streams, uses, and
/// durations), buffers (sizes, names, kinds, streams) and marks, in the same order, and have lost as many records.
/// Durations of collectives and of host waits, times at which ops were launched or started, addresses, devices, lines
/// of the user's code and names of streams may differ. O(trace)
bool do_the_same(const Trace& a, const Trace& b);

/// Gives each rank that does the same as an earlier rank, and takes part in the same collectives, the trace of that
/// rank, with its times.
/// @return  by rank: the rank whose trace it has now
std::vector<std::size_t> share_traces(LoadedJob& job);

}  // namespace tidepool
