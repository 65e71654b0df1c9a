// Bounds on each op, under every plan: the bytes that it needs in memory at once, and its earliest end.
#pragma once

#include <span>
#include <vector>

#include "simulator/run_spec.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Versions that are in memory when an op has run for the first time, under every plan.
struct WorkingSet {
  std::vector<VersionId> held;  ///< root versions: its outputs, and inputs that it did not replace; sorted
  Bytes bytes;                  ///< sum of their sizes
};

/// The working set of `op`. An output written in place takes the place of the version that it replaces, so only one of
/// the two counts; under copy-on-write both count. O(uses log uses).
WorkingSet working_set(const Trace& trace, const Assumptions& assume, OpId op);

/// The outputs of the step, which must exist at its end: root versions, each once, sorted.
std::vector<VersionId> handed_on(const Trace& trace);

/// By op, and one more for the end of the step: bytes of versions that exist by then, may never leave memory, and are
/// not in the op's working set. Zero unless sources are pinned.
std::vector<Bytes> pinned_beside(const Trace& trace, const Assumptions& assume);

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
