// Working set of an op: the bytes that it needs in memory at once.
#pragma once

#include <span>
#include <vector>

#include "simulator/run_spec.hpp"
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

}  // namespace tidepool
