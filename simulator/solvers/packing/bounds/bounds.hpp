// Heights below which no layout exists.
#pragma once

#include <string>

#include "simulator/solvers/packing/search/problem.hpp"

namespace tidepool {

/// A lower bound on the height of every layout, in units of the problem.
struct HeightBound {
  std::int64_t height = 0;
  std::string proof;
};

/// The largest sum of sizes in a section: pieces that live in one section lie one above the other in every layout.
HeightBound load_bound(const PackingProblem& problem);

/// A bound for sections with fixed pieces. Below the highest fixed piece, the other pieces have only those holes
/// that are large enough for the smallest of these pieces. What exceeds these holes lies above the highest fixed
/// piece; the top of that piece is itself a bound.
HeightBound fixed_bound(const PackingProblem& problem);

/// The highest of all bounds.
HeightBound height_bound(const PackingProblem& problem);

}  // namespace tidepool
