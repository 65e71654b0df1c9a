// A step whose batch is cut into micro-batches, with gradient accumulation: what shrinks, what runs several times.
#pragma once

#include <optional>

#include "traces/trace.hpp"

namespace tidepool {

/// The step with its forward and backward pass run once for each of `parts` equal parts of the batch, and the rest once.
///
/// What an op of these passes makes from the batch has the size and the time divided by `parts`. Buffers keep their size
/// if they do not depend on the batch (a mask, a parameter's cast), are gradients of parameters, cuBLAS's workspaces, or
/// of at most 512 bytes. The batch itself stays whole. From the second part on, gradients of parameters are added to those
/// of the first part; the additions move bytes as fast as the optimizer does. An output that the program keeps behind
/// the passes ends when the next part makes it anew. O(parts * steps).
/// @return  nothing if the step has no forward and backward pass, or several: its batch is already cut
std::optional<Trace> with_micro_batches(const Trace& step, int parts);

}  // namespace tidepool
