// Copies that ops wait for, with the time that a plan could gain without them.
#pragma once

#include <vector>

#include "simulator/plan.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// By version: time, within the last iteration, for which ops waited while a copy of this version ran.
struct ExposedCopies {
  std::vector<Nanos> in;   ///< to the device: copies of the op's inputs, and those before them in the queue
  std::vector<Nanos> out;  ///< to the host: copies out of a place that the op takes, and those before them in the queue
  Nanos of(VersionId v) const { return in[v.index()] + out[v.index()]; }
};

/// Replays a realised plan. An op's wait for inputs is charged to one of the copies that bring them: the one that ends
/// last. Its wait for places is charged to one of the copies that emptied places since the previous op: again the one
/// that ends last. If the wait is longer than that copy, the rest is charged to the copies before it in the same
/// queue, one after the other: each direction has one queue to or from the host and one to or from storage.
ExposedCopies exposed_copies(const Trace& trace, const RunSpec& spec, const Plan& plan);

}  // namespace tidepool
