// Heights below which no layout exists.
#pragma once

#include <string>

#include "simulator/packing/search/problem.hpp"

namespace tidepool {

/// In units of the problem.
struct HeightBound {
  std::int64_t height = 0;
  std::string proof;
};

/// The largest sum of sizes in a section: pieces that live in one section lie one above the other in every layout.
HeightBound load_bound(const PackingProblem& problem);

/// A bound for sections with fixed pieces. Below the highest fixed piece, the others have only the holes between fixed
/// ones, and only those holes that take the smallest of them. Bytes that exceed these holes lie above the highest fixed
/// piece, whose top is itself a bound.
HeightBound fixed_bound(const PackingProblem& problem);

/// The highest of all bounds.
HeightBound height_bound(const PackingProblem& problem);

}  // namespace tidepool
