// Iterations of a job without backward passes: parts of the job that pass no data on to the next part.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/import/updates.hpp"

namespace tidepool {

/// Divides steps that find_steps() found in a job without updates. If a job logs something every few iterations, these
/// iterations together can look like one step.
///
/// All ops from the first to the last use of a block are tied. Blocks in use for at least half of the job (weights) and
/// blocks of a few numbers (counts of a metric) tie no ops. So layers are tied, since each reads the output of another,
/// and iterations are not. Each part of tied ops with at least half as many ops as the largest part begins an
/// iteration, if all these parts have two thirds of their kinds of ops in common with the first of them.
/// @param names  by op: a number for its name
/// @return  the iterations; `found`, if it is empty, if there are no more such parts than steps, if these parts differ,
///          or if the access of most uses is not known
std::vector<FoundStep> divided_forward_steps(std::span<const std::uint32_t> names, std::vector<FoundStep> found,
                                             std::span<const BlockUse> uses, std::span<const std::int64_t> block_bytes);

}  // namespace tidepool
