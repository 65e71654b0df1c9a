// The knapsack of content to keep in a given number of bytes: three solvers of one problem.
#pragma once

#include <string_view>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

struct KnapsackItem {
  Bytes size;
  Nanos worth;
};

/// Greedy: the most worth per byte first, while it fits. O(n log n).
std::vector<bool> knapsack_greedily(const std::vector<KnapsackItem>& items, Bytes limit);

/// The best choice for sizes rounded up to ten-thousandths of the limit; never exceeds it. O(10,000 n).
std::vector<bool> knapsack_by_table(const std::vector<KnapsackItem>& items, Bytes limit);

/// The best choice, by an integer program.
std::vector<bool> knapsack_exactly(const std::vector<KnapsackItem>& items, Bytes limit);

}  // namespace tidepool
