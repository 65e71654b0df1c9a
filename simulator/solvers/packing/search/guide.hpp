// Orders of pieces that are close to a known layout.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/solvers/packing/search/problem.hpp"
#include "simulator/solvers/packing/search/random_numbers.hpp"

namespace tidepool {

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
