// The time of a step when nothing is in the way but what an op really waits for.
#pragma once

#include <vector>

#include "simulator/bounds/bound.hpp"

namespace tidepool {

/// When each op can end for the first time at the earliest: after the op before it on its stream, the ops that make
/// what it reads, and the ops that it is ordered after. Holds for every plan: moving or dropping content only delays
/// it. Waiting for a buffer's last readers before it is written again is left out: a plan may write elsewhere. O(uses).
std::vector<Nanos> earliest_ends(const Trace& trace);

/// Whether the time of the query's last iteration is at least that of its ops on one stream. Iterations overlap where a
/// lane starts on the next one before the slowest has finished the last.
bool iterations_are_apart(const BoundQuery& query);

/// When the clock of the measured iteration starts.
inline Nanos clock_start(const BoundQuery& query) {
  return query.iterations == 1 && !query.steady ? query.assume.clock_start : Nanos{};
}

}  // namespace tidepool
