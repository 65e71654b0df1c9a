// Search for the steps of a training job by its updates of content that lasts: weights and the optimizer's state.
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
/// not count. A block that is first read after it is first written, such as the optimizer's state, has one update less
/// than the weights, since its writes before that read are no update. So a block with n updates is in the groups of n
/// and of n + 1; with fewer than two updates, it is in none. Of the groups with at least two blocks and a thousandth of
/// the bytes of all these blocks, the one with most bytes gives the steps. If there is no such group, uses of unknown
/// access count as writes (of a fused optimizer), and the group must have a tenth of the bytes.
/// @param ops          number of ops
/// @param uses         in the order of ops
/// @param block_bytes  by block
std::vector<std::size_t> find_updates(std::size_t ops, std::span<const BlockUse> uses,
                                      std::span<const std::int64_t> block_bytes);

/// `found`, if there are fewer than two updates, or if each of its steps contains exactly one update and no update but
/// the first is outside of them; otherwise one step for each update but the first, from the end of the previous update
/// to the end of its own. If the first update is then before all steps, ops named like those near the begin of the
/// first step are looked for before this update. If there are some, a step that begins with them and contains the
/// update is put in front of the others.
/// @param names    by op: equal numbers for equal names
/// @param found    by repetition, see find_steps
/// @param updates  see find_updates
std::vector<FoundStep> steps_with_updates(std::span<const std::uint32_t> names, std::vector<FoundStep> found,
                                          std::span<const std::size_t> updates);

}  // namespace tidepool
