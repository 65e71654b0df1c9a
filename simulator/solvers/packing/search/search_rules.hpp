// Starts of a search that starts again and again: its rules, the lengths of its runs, and orders close to a known
// layout.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/solvers/packing/search/exact_search.hpp"
#include "simulator/solvers/packing/search/problem.hpp"
#include "simulator/solvers/packing/search/random_numbers.hpp"

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

/// How far an order is from the known layout.
struct GuideChange {
  SectionRange window;  ///< ranks of pieces that live in it rise by up to 1, 4, 20 or 60 % of the capacity
  double elsewhere;     ///< ranks of other pieces rise by up to this share of the capacity
};

/// A window of a half to a sixteenth of the sections around `middle`.
SectionRange window_around(const PackingProblem& problem, std::uint32_t middle, RandomNumbers& random);

/// Ranks for ExactSearch::guide(): the offset of each piece over `capacity`, raised at random.
/// @param offsets  by piece; -1 for pieces without one, whose ranks are random in [0, 1)
std::vector<double> guide_near(const PackingProblem& problem, std::span<const std::int64_t> offsets,
                               std::int64_t capacity, GuideChange change, RandomNumbers& random);

}  // namespace tidepool
