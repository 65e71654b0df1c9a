// Gaps of activations.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Gaps in which an activation is idle between the forward and the backward phase, each version once: its next reader
/// comes after the first backward op. Parameters and other buffers that exist before and after the step are left out.
/// In the order of due ops.
/// @param gaps  of the trace
std::vector<std::uint32_t> feature_maps(const Trace& trace, const std::vector<Gap>& gaps);

}  // namespace tidepool
