// Gaps of activations.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Gaps in which an activation waits between the forward and the backward phase, each version once: what it is read
/// for next lies behind the first backward op. Parameters and what else exists before and after the step is not among
/// them. In the order in which they are due.
/// @param gaps  of the trace
std::vector<std::uint32_t> feature_maps(const Trace& trace, const std::vector<Gap>& gaps);

}  // namespace tidepool
