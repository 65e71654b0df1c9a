#include "simulator/solvers/packing/search/search_rules.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace tidepool {

std::vector<SearchRule> search_rules() {
  using Section = SearchRule::Section;
  using Piece = SearchRule::Piece;
  std::vector<SearchRule> rules;
  for (const Piece piece : {Piece::kLongest, Piece::kLargestArea, Piece::kLargest})
    for (const Section section :
         {Section::kTight, Section::kWeighted, Section::kFewest, Section::kTightest, Section::kLowest})
      rules.push_back({.section = section, .piece = piece});
  return rules;
}

std::vector<SearchRule> tight_rules_first() {
  std::vector<SearchRule> rules = search_rules();
  std::stable_partition(rules.begin(), rules.end(), [](SearchRule rule) {
    return rule.section == SearchRule::Section::kTight || rule.section == SearchRule::Section::kTightest;
  });
  return rules;
}

std::uint64_t luby(std::uint64_t turn) {
  for (;;) {
    const std::uint64_t whole = std::bit_ceil(turn + 1);  // turns up to whole - 1 are a complete pattern
    if (turn + 1 == whole) return whole / 2;
    turn -= whole / 2 - 1;
  }
}

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
