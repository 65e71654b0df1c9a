// Copies that are not hidden behind ops: the time that a plan may gain without them.
#pragma once

#include <vector>

#include "simulator/plan.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// By version: time in the last iteration that its copies ran while an op waited for copies.
struct ExposedCopies {
  std::vector<Nanos> in;   ///< ... to the device, of what the op reads or of what was to come before that
  std::vector<Nanos> out;  ///< ... to the host, leaving a place that the op takes, or what was to leave before that
  Nanos of(VersionId v) const { return in[v.index()] + out[v.index()]; }
};

/// Carries a realised plan out again. What an op waits for is the copy that ends last, of those that bring what it
/// reads and of those that left places since the op before it. The time is put down to that copy, and what is longer
/// than it to those in front of it in its direction, one after the other.
ExposedCopies exposed_copies(const Trace& trace, const RunSpec& spec, const Plan& plan);

}  // namespace tidepool
