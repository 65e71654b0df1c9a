// Iterations of a job that only computes forward: parts of it that hand nothing on to the next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/import/updates.hpp"

namespace tidepool {

/// Divides the steps that repetition has found in a job without updates, if a log at regular distances has joined
/// several iterations to one of them.
///
/// Ops are tied if they use a common block between them; blocks that are in use for at least half of the job (weights)
/// and numbers (counts of a metric) tie none. Layers are tied by what they hand on, iterations are
/// not. Of the parts that are tied, those with at least half of the ops of the largest one begin an iteration each, if
/// all of them have two thirds of their kinds of ops in common.
/// @return  `found`, if there are no more such parts than steps, or the access of most uses is not known
std::vector<FoundStep> divided_forward_steps(std::span<const std::uint32_t> names, std::vector<FoundStep> found,
                                             std::span<const BlockUse> uses, std::span<const std::int64_t> block_bytes);

}  // namespace tidepool
