// Working set of an op: the bytes that it needs in memory at once.
#pragma once

#include <span>
#include <vector>

#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// What occupies memory the moment an op of the program has run for the first time, whatever the plan.
struct WorkingSet {
  std::vector<VersionId> held;  ///< root versions: what it made, and what it read and did not replace; sorted
  Bytes bytes;                  ///< they take together
};

/// The working set of `op`. An output written in place has the place of what it replaces, so that one of the two
/// counts; under copy-on-write both do. O(uses log uses).
WorkingSet working_set(const Trace& trace, const Assumptions& assume, OpId op);

/// What the end of the step hands on, each root once, sorted.
std::vector<VersionId> handed_on(const Trace& trace);

/// By op, and one more for the end of the step: bytes of what may never leave memory and is there by then, but is not
/// part of the op's working set. Nothing unless sources are pinned.
std::vector<Bytes> pinned_beside(const Trace& trace, const Assumptions& assume);

}  // namespace tidepool
