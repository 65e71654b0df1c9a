// Inputs of packing: tables of lifetimes as problems, and a step repeated for pools that learn from iterations.
#pragma once

#include "simulator/instance.hpp"
#include "traces/import/lifetimes.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The lifetimes of `times` iterations of a trace, without ops. Each iteration begins with a mark. A buffer that exists
/// both before and after the step stays. A buffer that the step finds and frees is allocated at the beginning of every
/// further iteration. A buffer that the step allocates and leaves is freed at the end of each iteration but the last.
/// @throws InputError  if `times` is below 1 or above 50 million, or there would be more than 50 million buffers
Trace repeat_lifetimes(const Trace& trace, int times);

/// The rows as items. An item's id is the index of its row, counted from 0.
/// @param alignment  sizes and offsets are multiples of it too, and no size is 0; 1 B: as the table says
/// @throws InputError  "buffer 3: alignments of 48 B and 512 B have no common multiple below 2^61 B"
Instance instance_of(const LifetimeTable& table, Bytes alignment);

}  // namespace tidepool
