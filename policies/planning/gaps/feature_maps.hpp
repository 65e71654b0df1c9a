// Gaps of activations.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Indices of the gaps in which an activation is idle between the forward and the backward phase: the gap begins before
/// the first backward op, and is due at this op or later. So each version has one at most. Buffers that exist before
/// and after the step, such as parameters, are left out. In the order of due ops.
/// @param gaps  of the trace
std::vector<std::uint32_t> feature_maps(const Trace& trace, const std::vector<Gap>& gaps);

}  // namespace tidepool
