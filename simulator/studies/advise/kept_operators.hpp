// Operators whose outputs selective checkpointing may keep, ranked by the time per byte that keeping them saves.
#pragma once

#include <vector>

#include "simulator/studies/advise/checkpoint.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Sets of operators to keep, each larger than the one before; operators with the most time per byte of output come
/// first. All random operators are kept or none, since they share a generator. Operators are left out if they have no
/// new output, if their outputs are changed in place, or if they take less than a hundredth of the forward pass's time.
/// At most eight sets; none if the ops are kernels.
std::vector<KeptOperators> operators_to_keep(const Trace& trace);

}  // namespace tidepool
