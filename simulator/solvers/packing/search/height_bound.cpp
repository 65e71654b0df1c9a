#include <algorithm>
#include <limits>
#include <utility>

#include "simulator/solvers/packing/search/problem.hpp"

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

HeightBound fixed_bound(const PackingProblem& problem) {
  HeightBound bound{0, "fixed"};
  if (!problem.has_fixed) return bound;
  struct Section {
    std::vector<std::pair<std::int64_t, std::int64_t>> fixed;  // offset and top
    std::int64_t free = 0, smallest = std::numeric_limits<std::int64_t>::max();
  };
  std::vector<Section> sections(problem.sections);
  for (const PackingProblem::Piece& piece : problem.pieces)
    for (const SectionRange range : problem.lives(piece))
      for (std::uint32_t s = range.first; s < range.last; ++s) {
        if (piece.fixed >= 0) {
          sections[s].fixed.emplace_back(piece.fixed, piece.fixed + piece.size);
          continue;
        }
        sections[s].free += piece.size;
        sections[s].smallest = std::min(sections[s].smallest, piece.size);
      }
  for (Section& section : sections) {
    std::sort(section.fixed.begin(), section.fixed.end());
    std::int64_t top = 0, room = 0;
    for (const auto& [first, last] : section.fixed) {
      if (first - top >= section.smallest) room += first - top;
      top = last;
    }
    bound.height = std::max(bound.height, top + std::max<std::int64_t>(0, section.free - room));
  }
  return bound;
}

}  // namespace tidepool
