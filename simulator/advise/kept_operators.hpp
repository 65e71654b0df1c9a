// Operators that selective checkpointing may keep, by what they save.
#pragma once

#include <vector>

#include "simulator/advise/checkpoint.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Sets of operators to keep, each one larger than the one before: those whose outputs are the dearest by time for a byte
/// come first. Random ones go together, since they share a generator. Left out are operators that make nothing new, whose
/// outputs are changed in place, or that take less than a hundredth of the forward pass. At most eight; none where the
/// ops are kernels.
std::vector<KeptOperators> operators_to_keep(const Trace& trace);

}  // namespace tidepool
