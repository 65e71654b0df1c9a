// Selective checkpointing of a region: the choice of ops that keep their outputs for the backward phase.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

struct SelectiveOp {
  Bytes memory = {};  ///< bytes of its outputs
  Nanos runtime = {};
  bool view = false;    ///< its output is another view of existing bytes
  bool random = false;  ///< draws random numbers
  std::optional<std::size_t> updates =
      {};  ///< for an op in place: the index of the op whose output it updates; its own index if that is from outside
           ///< the region
};

/// Ops in program order. Decisions hold for groups: an in-place op belongs to the group of the op whose output it
/// updates, and random ops form one group, since they share a generator. Views always run again. Ops that update values
/// from outside are always kept, and so are random ops if `keep_random`.
struct SelectiveRegion {
  std::vector<SelectiveOp> ops;
  bool keep_random = false;
};

/// By op, whether to keep its outputs, so that the least time runs again and at most `limit` bytes are kept. None if no
/// choice is within the limit, or if two rules contradict each other. A knapsack. Source: PyTorch 2.15,
/// torch/distributed/_tools/sac_ilp.py, get_optimal_checkpointing_policy_per_module (there, with a gap of 5 %).
std::optional<std::vector<bool>> keep_best(const SelectiveRegion& region, Bytes limit);

/// A group of ops. A region gives up its groups in the order of most bytes per time.
struct SelectiveGroup {
  Bytes memory;
  Nanos runtime;
  std::vector<std::size_t> ops;
};
struct SelectiveOrder {
  SelectiveGroup always;  ///< runs again in every case
  std::vector<SelectiveGroup> given_up;
  SelectiveGroup never;  ///< is kept in every case
};
SelectiveOrder order_of(const SelectiveRegion& region);

/// By op, whether to keep its outputs. Groups are given up in the order of order_of() until the remaining bytes are
/// within the limit, or no group is left. Bytes that are never given up count twice. O(n log n).
/// Source: PyTorch, pull request 140410, get_greedy_checkpointing_policy_per_module.
std::vector<bool> keep_greedily(const SelectiveRegion& region, Bytes limit);

/// The bytes that a budget between 0 and 1 allows: that share of the bytes that all ops make, rounded up.
Bytes share_of(const SelectiveRegion& region, double budget);

}  // namespace tidepool
