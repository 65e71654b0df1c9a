// Shares of each block's activations to keep, to recompute and to offload, and the fates of ops that follow from them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// A block of a network (a transformer layer) in the linear program over all blocks.
struct BlockLoad {
  Bytes activations;         ///< bytes that forward makes and backward reads
  Bytes fixed;               ///< part of `activations` that is kept: its ops must not run again
  Bytes backward_temporary;  ///< most bytes that backward has made and that are alive during the block's backward ops
};

struct BlockLimits {
  Bytes budget;     ///< for all memory except that from before the step
  Bytes head;       ///< most bytes alive at once during ops outside of all blocks
  Bytes to_host;    ///< limit of one block's swap-outs: what the link carries during an average block's forward ops
  Bytes to_device;  ///< limit of one block's swap-ins: what the link carries during an average block's backward ops
  Bytes host;       ///< limit of all blocks' bytes on the host together
};

struct BlockShares {
  double keep = 1, recompute = 0, offload = 0;  ///< of the block's activations; the sum is 1
};

/// Shares with the least recomputation, if recomputing a share of any block costs the same. They satisfy:
///   - During each block's backward, the budget holds the block's activations, the kept activations of the blocks
///     before it, the offloaded activations of the one block before it, and the temporary bytes.
///   - During the head, the budget holds the kept activations of all blocks, and the head's bytes.
///   - A block keeps at least its fixed part, the last block offloads nothing, and copies keep to their limits.
/// Several choices may be equally good. None if no shares satisfy this. A linear program of 3 variables for each block.
/// @param blocks  in forward order
/// Source: torchtitan, experiments/graph_trainer/auto_sac_offload_solver.py, plan_outer (with one rank and
/// OFFLOAD_TIME_PRICE 0).
std::optional<std::vector<BlockShares>> share_out(const std::vector<BlockLoad>& blocks, const BlockLimits& limits);

enum class Fate : std::uint8_t { kKeep, kRecompute, kOffload };

/// An op of a block whose output backward reads.
struct BlockOp {
  Bytes saved;
  Nanos duration;
  bool fixed = false;       ///< must not run again: its output is kept
  bool offloadable = true;  ///< may be copied to the host
};

/// Gives each op of a block a fate. Ops are ranked by time per byte. The most expensive offloadable ops are offloaded,
/// then the cheapest ops are recomputed, each within its share; an op that does not fit is passed over. If more than
/// the share to keep is left then, further ops are recomputed; the last of these may free more than is needed. All
/// other ops are kept. O(n log n). Source: the same file, build_inner_greedy.
std::vector<Fate> follow_shares(const std::vector<BlockOp>& ops, const BlockShares& shares);

}  // namespace tidepool
