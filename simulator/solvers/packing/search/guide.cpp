#include "simulator/solvers/packing/search/guide.hpp"

#include <algorithm>
#include <array>

namespace tidepool {

SectionRange window_around(const PackingProblem& problem, std::uint32_t middle, RandomNumbers& random) {
  const std::uint32_t half = (problem.sections >> (1 + random.below(4))) / 2 + 1;
  return {middle - std::min(middle, half), std::min(problem.sections, middle + half)};
}

std::vector<double> guide_near(const PackingProblem& problem, std::span<const std::int64_t> offsets,
                               std::int64_t capacity, GuideChange change, RandomNumbers& random) {
  constexpr std::array kInside{0.01, 0.04, 0.2, 0.6};
  std::vector<double> ranks;
  for (std::uint32_t i = 0; i < offsets.size(); ++i) {
    const auto lives = problem.lives(problem.pieces[i]);
    const bool inside = std::any_of(lives.begin(), lives.end(), [&](SectionRange range) {
      return range.first < change.window.last && range.last > change.window.first;
    });
    const double base =
        offsets[i] < 0 ? random.next() : static_cast<double>(offsets[i]) / static_cast<double>(capacity);
    ranks.push_back(base + (inside ? kInside[random.below(kInside.size())] : change.elsewhere) * random.next());
  }
  return ranks;
}

}  // namespace tidepool
