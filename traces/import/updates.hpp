// Steps of a training job by its updates of content that lasts: weights and the optimizer's state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/import/steps.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A block of at most so many bytes holds a number or a few, as allocators round: a metric, a counter.
constexpr std::int64_t kNumberBytes = 512;

/// A use of a block of device memory by an op.
struct BlockUse {
  std::uint32_t op = 0, block = 0;
  Access access = Access::kTouch;
  bool copied = false;  ///< by a copy: what a checkpoint reads is no use of weights
  bool unknown() const { return access == Access::kTouch; }
};

/// The ops that end the optimizer's step, in order; none if no content that lasts is updated again and again.
///
/// A block is updated where ops write it after kernels have only read it, up to the next one that only reads it:
/// weights once in each step, however many micro-batches and logs there are; an activation never. Of the blocks that
/// are in use for at least half of the job, those of most bytes with one number of updates tell the steps, if they are
/// two at least and a thousandth of all such blocks; numbers do not count. A block that is first read after its first
/// update has one update less, as the optimizer's state. If there are no such blocks, uses of unknown access are taken
/// for writes (a fused optimizer's), and a tenth of all such blocks is asked for.
/// @param uses         in the order of ops
/// @param block_bytes  by block
std::vector<std::size_t> find_updates(std::size_t ops, std::span<const BlockUse> uses,
                                      std::span<const std::int64_t> block_bytes);

/// The steps that repetition has found, if each has one update and at most the first is missing; else steps that end
/// with the updates. A missing first step begins with the ops with which the second one does, if it has such ops.
/// @param names    by op: equal numbers for equal names
/// @param found    by repetition, see find_steps
/// @param updates  see find_updates
std::vector<FoundStep> steps_with_updates(std::span<const std::uint32_t> names, std::vector<FoundStep> found,
                                          std::span<const std::size_t> updates);

}  // namespace tidepool
