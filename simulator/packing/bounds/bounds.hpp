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

/// What lives in one section lies side by side, so no layout is lower than the largest sum of sizes in a section.
HeightBound load_bound(const PackingProblem& problem);

/// Of a section with fixed pieces: below the highest of them, other pieces find room in the holes between fixed ones
/// only, and in none that is smaller than the smallest of them; what exceeds those holes lies above. The fixed top
/// alone is a bound, too.
HeightBound fixed_bound(const PackingProblem& problem);

/// The better of all.
HeightBound height_bound(const PackingProblem& problem);

}  // namespace tidepool
