// Meaning of the names of NVTX ranges for a training step.
#pragma once

#include <optional>
#include <string_view>

#include "traces/trace.hpp"

namespace tidepool {

/// The phase of a range, from its name, as in "Forward", "MulBackward0" or "Optimizer.step#SGD.step". The name must
/// contain one of the words forward, fwd, backward, bwd, optimizer or optim, in any case, and no word of another phase.
std::optional<Phase> phase_named(std::string_view name);

/// Whether a range counts iterations: its name has step, iter, iteration or batch, in any case, and a number behind it
/// (only blanks and _-#:= may stand between), as in "Warm-up Step 1", "iter_12" and "ProfilerStep#3".
bool names_iteration(std::string_view name);

/// Whether a range is named by a module path: an identifier and at least one more identifier or number, joined by dots,
/// as in "encoder.layer.0.attention".
bool names_module(std::string_view name);

}  // namespace tidepool
