// The time of a step in which ops wait only for their streams, inputs and dependencies.
#pragma once

#include <vector>

#include "simulator/solvers/bounds/bound.hpp"

namespace tidepool {

/// The earliest end of each op's first run, since the start of the step: after the previous op on its stream, the ops
/// that make its inputs, and the ops that it is ordered after. This holds for every plan that runs the ops in the order
/// of the trace, since moving or dropping content only delays ops. An op that overwrites a buffer does not wait for the
/// buffer's last readers here: a plan may write elsewhere. O(uses).
/// @param launch  the time of the host to launch an op, which starts afterwards
std::vector<Nanos> earliest_ends(const Trace& trace, Nanos launch = {});

/// Whether it is certain that the query's last iteration (if steady: the mean one) takes at least the time of a single
/// run of the step. It may take less if iterations overlap: a lane may start the next iteration before the slowest lane
/// has finished this one.
bool iterations_are_apart(const BoundQuery& query);

/// The time at which the clock of the measured iteration starts.
inline Nanos clock_start(const BoundQuery& query) {
  return query.iterations == 1 && !query.steady ? query.assume.clock_start : Nanos{};
}

}  // namespace tidepool
