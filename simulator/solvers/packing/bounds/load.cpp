#include <algorithm>

#include "simulator/solvers/packing/bounds/bounds.hpp"

namespace tidepool {

HeightBound load_bound(const PackingProblem& problem) {
  HeightBound bound{0, "load"};
  for (const std::int64_t load : problem.loads()) bound.height = std::max(bound.height, load);
  return bound;
}

HeightBound height_bound(const PackingProblem& problem) {
  HeightBound best = load_bound(problem);
  if (HeightBound other = fixed_bound(problem); other.height > best.height) best = std::move(other);
  return best;
}

}  // namespace tidepool
