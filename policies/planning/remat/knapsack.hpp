// Knapsack: several solvers that choose content to keep within a number of bytes. All return, by item, whether it is
// kept.
#pragma once

#include <string_view>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

struct KnapsackItem {
  Bytes size;
  Nanos worth;
};

/// Greedy: the most worth per byte first; an item that does not fit any more is passed over. O(n log n).
std::vector<bool> knapsack_greedily(const std::vector<KnapsackItem>& items, Bytes limit);

/// The best choice for sizes rounded up to ten-thousandths of the limit; never exceeds it. O(10,000 n).
std::vector<bool> knapsack_by_table(const std::vector<KnapsackItem>& items, Bytes limit);

/// The best choice if sizes are rounded to the nearest ten-thousandth of `whole`, and worths to 24 bits, as PyTorch
/// does. So an item rounded to size 0 costs nothing, an item that adds too little to a large sum is not taken, and the
/// choice may exceed `share`, which is a part of `whole`, 0 to 1. O(10,000 n). Source: PyTorch 2.15,
/// torch/_functorch/_activation_checkpointing/knapsack.py, dp_knapsack.
std::vector<bool> knapsack_by_shares(const std::vector<KnapsackItem>& items, Bytes whole, double share);

/// The best choice, without items of no worth. Takes seconds at most: once there are four million partial choices, it
/// goes on to no further item and returns the best choice found. O(partial choices * log n); there are few if items are
/// alike.
std::vector<bool> knapsack_exactly(const std::vector<KnapsackItem>& items, Bytes limit);

}  // namespace tidepool
