// Improving a selection of gaps by small changes where its copies get in each other's way.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/swap/trials.hpp"

namespace tidepool {

/// Changes the best selection so far one gap at a time, schedules it anew and judges it, until the trials are over.
/// Where the load and the bytes under way are above the capacity at some slot, a gap that lasts there is added or one
/// that is under way there is left out; now and then a gap is exchanged for another. What is no worse is kept.
/// Deterministic for a seed.
void improve(Trials& trials, const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine,
             Bytes capacity, std::uint64_t seed);

}  // namespace tidepool
