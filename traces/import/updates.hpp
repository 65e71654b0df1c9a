// Steps of a training job by its updates of content that lasts: weights and the optimizer's state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/import/steps.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The most bytes of a block that holds one or a few numbers (a metric, a counter), with the allocator's rounding.
constexpr std::int64_t kNumberBytes = 512;

/// A use of a block of device memory by an op.
struct BlockUse {
  std::uint32_t op = 0, block = 0;
  Access access = Access::kTouch;
  bool copied = false;  ///< the op is a copy; its reads, as for a checkpoint, do not count as uses of weights
  bool unknown() const { return access == Access::kTouch; }
};

/// The ops that end the optimizer's step, in order; none if no content that lasts is updated again and again.
///
/// One update of a block is all ops that write it after kernels have only read it, up to the next kernel that only
/// reads it. So weights have one update in each step, however many micro-batches and logs there are; an activation has
/// none. Blocks in use for at least half of the job are grouped by their number of updates; blocks of a few numbers do
/// not count. A block that is first read after its first update, such as the optimizer's state, has one update less,
/// and is in the group of the others too. The group of most bytes gives the steps. It must have two blocks and a
/// thousandth of the bytes of all these blocks. If there is no such group, uses of unknown access count as writes (of
/// a fused optimizer), and the group must have a tenth of the bytes.
/// @param uses         in the order of ops
/// @param block_bytes  by block
std::vector<std::size_t> find_updates(std::size_t ops, std::span<const BlockUse> uses,
                                      std::span<const std::int64_t> block_bytes);

/// `found`, if each of its steps has one update and no step but the first is missing; otherwise steps that end with the
/// updates. A missing first step is added if it has the ops with which the second step begins; it begins with them.
/// @param names    by op: equal numbers for equal names
/// @param found    by repetition, see find_steps
/// @param updates  see find_updates
std::vector<FoundStep> steps_with_updates(std::span<const std::uint32_t> names, std::vector<FoundStep> found,
                                          std::span<const std::size_t> updates);

}  // namespace tidepool
