#include "simulator/solvers/packing/search/search_rules.hpp"

#include <algorithm>
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

}  // namespace tidepool
