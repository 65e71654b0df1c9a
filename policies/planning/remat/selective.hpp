// Selective checkpointing of a region: which of its ops keep their outputs for the backward phase.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

struct SelectiveOp {
  Bytes memory = {};  ///< of its outputs
  Nanos runtime = {};
  bool view = false;    ///< its output is another name for bytes that are there
  bool random = false;  ///< draws random numbers
  std::optional<std::size_t> updates =
      {};  ///< in place: what the op with this index made; its own index: what came from
           ///< outside the region
};

/// In the order of the program. Decisions hold for groups: an op in place goes with the op that made what it updates,
/// and random ops go together, since they share a generator. Views always run again. What updates something from
/// outside is always kept, and so are random ops if `keep_random`.
struct SelectiveRegion {
  std::vector<SelectiveOp> ops;
  bool keep_random = false;
};

/// By op: whether it is kept, so that the least time runs again and at most `limit` bytes are kept; nothing: no choice
/// is within the limit, or two rules contradict each other. A knapsack. Source: PyTorch 2.15,
/// torch/distributed/_tools/sac_ilp.py, get_optimal_checkpointing_policy_per_module (there, with a gap of 5 %).
std::optional<std::vector<bool>> keep_best(const SelectiveRegion& region, Bytes limit);

/// In the order in which a region gives its groups up: most bytes per time first.
struct SelectiveGroup {
  Bytes memory;
  Nanos runtime;
  std::vector<std::size_t> ops;
};
struct SelectiveOrder {
  SelectiveGroup always;  ///< runs again whatever is decided
  std::vector<SelectiveGroup> given_up;
  SelectiveGroup never;  ///< is kept whatever is decided
};
SelectiveOrder order_of(const SelectiveRegion& region);

/// By op: whether it is kept when groups are given up in order_of() until the rest, and once more what is never given
/// up, is within the limit, or there is none left. O(n log n). Source: PyTorch, pull request 140410,
/// get_greedy_checkpointing_policy_per_module.
std::vector<bool> keep_greedily(const SelectiveRegion& region, Bytes limit);

/// A share of what all ops together make: what a budget between 0 and 1 allows, rounded up to bytes.
Bytes share_of(const SelectiveRegion& region, double budget);

}  // namespace tidepool
