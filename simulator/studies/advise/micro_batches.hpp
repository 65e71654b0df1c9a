// A step whose batch is cut into micro-batches, with gradient accumulation.
#pragma once

#include <optional>
#include <string>

#include "traces/trace.hpp"

namespace tidepool {

/// The changed step: the forward and the backward pass run once for each of `parts` equal parts of the batch, all other
/// ops once.
///
/// In these passes, sizes of buffers and times of ops are divided by `parts` if they depend on the batch. Buffers keep
/// their size if they do not depend on the batch (a mask, a parameter's cast), are gradients of parameters or cuBLAS's
/// workspaces, or have at most 512 bytes. The batch itself keeps its size, and stays until all parts have run, since
/// they are views of it. From the second part on, gradients of parameters are added to those of the first part; the
/// additions move bytes as fast as the optimizer does. An output that the program keeps after the passes is freed when
/// the next part makes it again. O(parts * steps).
/// @return  none if the step has no forward and backward pass; if it has several: its batch is already cut; or if
///          parameters are updated before the last backward op, as in a GAN: each part would update them; or for the
///          reason in no_micro_batches()
std::optional<Trace> with_micro_batches(const Trace& step, int parts);

/// Why it is not evident which dimension is the batch, as a clause; empty if nothing speaks against one.
std::string no_micro_batches(const Trace& step);

}  // namespace tidepool
