// Sequences of rules and of run lengths for a search that starts again and again.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/solvers/packing/search/exact_search.hpp"

namespace tidepool {

/// The rules in the order in which they are tried.
std::vector<SearchRule> search_rules();

/// The same rules, but first those that prefer sections with the least slack.
std::vector<SearchRule> tight_rules_first();

/// 1, 1, 2, 1, 1, 2, 4, ...: lengths of runs that are within a constant factor of the best choice, whatever the
/// distribution of the length that succeeds (Luby, Sinclair & Zuckerman, "Optimal Speedup of Las Vegas Algorithms",
/// 1993).
/// @param turn  from 1
std::uint64_t luby(std::uint64_t turn);

}  // namespace tidepool
