// Kinds of buffers, found where nobody said them.
#pragma once

#include "traces/trace.hpp"

namespace tidepool {

/// The same trace with a kind for those buffers of unknown kind that show one by when they are used, if the ops' phases
/// are known:
/// - parameter: outlives a step or is older, used in the forward pass and in the optimizer;
/// - optimizer state: outlives a step or is older, used in the optimizer only;
/// - gradient: used first in the backward pass, and in the optimizer;
/// - input: first written by a copy from the host, and only read after;
/// - activation: used first in the forward pass, and in the backward pass;
/// - workspace: made for one op.
/// meta.inferred_kinds says how many were found so: they are guesses.
Trace with_inferred_kinds(Trace trace);

}  // namespace tidepool
