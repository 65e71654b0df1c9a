// Sequences of rules and lengths of a search that begins again and again.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/packing/search/exact_search.hpp"

namespace tidepool {

/// The rules in the order in which they are tried.
std::vector<SearchRule> search_rules();

/// The same, those first that look at the sections with the least waste first.
std::vector<SearchRule> tight_rules_first();

/// 1, 1, 2, 1, 1, 2, 4, ...: the lengths of runs that lose least where luck decides when one succeeds (Luby, Sinclair &
/// Zuckerman, "Optimal Speedup of Las Vegas Algorithms", 1993).
/// @param turn  from 1
std::uint64_t luby(std::uint64_t turn);

}  // namespace tidepool
