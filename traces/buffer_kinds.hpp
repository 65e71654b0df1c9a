// Inference of the kinds of buffers.
#pragma once

#include "traces/trace.hpp"

namespace tidepool {

/// The same trace with kinds for buffers of unknown kind, inferred from the phases in which they are used. A trace
/// that lacks forward or backward ops stays as it is. The first of these rules that fits a buffer gives its kind:
/// - parameter: older than the trace or outlives it, used in the forward pass and in the optimizer;
/// - optimizer state: older than the trace or outlives it, used in the optimizer only;
/// - gradient: used first in the backward pass, and used in the optimizer;
/// - input: first written by a copy from the host, and only read later;
/// - activation: used first in the forward pass, and used in the backward pass;
/// - workspace: made for one op, or by the optimizer for itself;
/// - activation, gradient: made for several ops, first in the forward or in the backward pass.
/// These kinds are guesses; meta.inferred_kinds has their number.
Trace with_inferred_kinds(Trace trace);

}  // namespace tidepool
