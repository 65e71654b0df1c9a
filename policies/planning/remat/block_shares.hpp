// Shares of each block's activations to keep, to recompute and to offload, and the ops that follow them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

/// A block of a network (a transformer layer), as the program over all blocks sees it.
struct BlockLoad {
  Bytes activations;         ///< of forward, read by backward
  Bytes fixed;               ///< part of them that must not run again: it is kept or offloaded
  Bytes backward_temporary;  ///< most bytes that backward has made and that live during the block's backward ops
};

struct BlockLimits {
  Bytes budget;     ///< for everything but what exists before the step
  Bytes head;       ///< most bytes live at once of ops outside of all blocks
  Bytes to_host;    ///< that one block may copy: what the link carries during the mean block's forward ops
  Bytes to_device;  ///< the same for backward ops and copies back
  Bytes host;       ///< that all blocks together may have on the host
};

struct BlockShares {
  double keep = 1, recompute = 0, offload = 0;  ///< of the block's activations; the sum is 1
};

/// Shares with the least recomputation, where recomputing a share of any block costs the same, so that
///   - during each block's backward, its activations, what blocks before it keep, what the one before it offloads and
///     the temporary bytes fit the budget; and during the head, what all blocks keep and the head's bytes,
///   - a block keeps at least its fixed part, the last one offloads nothing, and copies keep to their limits.
/// Several choices may be equally good. None if there is none. A linear program of 3 variables for each block.
/// Source: torchtitan, experiments/graph_trainer/auto_sac_offload_solver.py, plan_outer (with one rank and
/// OFFLOAD_TIME_PRICE 0).
std::optional<std::vector<BlockShares>> share_out(const std::vector<BlockLoad>& blocks, const BlockLimits& limits);

enum class Fate : std::uint8_t { kKeep, kRecompute, kOffload };

/// An op of a block whose output backward reads.
struct BlockOp {
  Bytes saved;
  Nanos duration;
  bool fixed = false;       ///< must not run again: it stays
  bool offloadable = true;  ///< may be copied to the host
};

/// Gives each op of a block a fate. Ranked by time per byte, the dearest ops are offloaded as far as they fit their
/// share, then the cheapest are recomputed as far as they fit theirs, and further ones as far as more is kept than
/// shared out; the last of these may be larger than what is left. Everything else is kept. O(n log n).
/// Source: the same file, build_inner_greedy.
std::vector<Fate> follow_shares(const std::vector<BlockOp>& ops, const BlockShares& shares);

}  // namespace tidepool
