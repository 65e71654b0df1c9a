// Repeats in strings, compared with a search at all positions.
#include "traces/step/repeats.hpp"

#include <algorithm>
#include <string_view>

#include "tests/catch.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::repeats_test {

namespace {

std::vector<std::uint32_t> letters_of(std::string_view text) { return {text.begin(), text.end()}; }

/// All runs by definition: for every period, the parts that cannot be extended and have no shorter period.
std::vector<PeriodicPart> by_definition(const std::vector<std::uint32_t>& text) {
  const auto n = static_cast<std::uint32_t>(text.size());
  std::vector<PeriodicPart> parts;
  for (std::uint32_t period = 1; 2 * period <= n; ++period)
    for (std::uint32_t first = 0; first + period < n;) {
      std::uint32_t i = first;
      while (i + period < n && text[i] == text[i + period]) ++i;
      const bool known = std::any_of(parts.begin(), parts.end(), [&](const PeriodicPart& part) {
        return part.first == first && part.last == i + period && period % part.period == 0;
      });
      if (i - first >= period && !known) parts.push_back({first, i + period, period});
      first = std::max(i, first + 1) + (i > first ? 1 : 0);
    }
  std::sort(parts.begin(), parts.end(), [](const PeriodicPart& a, const PeriodicPart& b) {
    return a.first != b.first ? a.first < b.first : a.last < b.last;
  });
  return parts;
}

}  // namespace

TEST_CASE("all runs of a word are found, also nested ones") {
  CHECK(periodic_parts(letters_of("")).empty());
  CHECK(periodic_parts(letters_of("abcdefg")).empty());
  CHECK(periodic_parts(letters_of("aaaa")) == std::vector<PeriodicPart>{{0, 4, 1}});
  CHECK(periodic_parts(letters_of("mississippi")) ==
        std::vector<PeriodicPart>{{1, 8, 3}, {2, 4, 1}, {5, 7, 1}, {8, 10, 1}});
  // "xaab" three times, then the beginning of a fourth.
  CHECK(periodic_parts(letters_of("xaabxaabxaabxa")) ==
        std::vector<PeriodicPart>{{0, 14, 4}, {1, 3, 1}, {5, 7, 1}, {9, 11, 1}});
}

TEST_CASE("the runs of random words are those of the definition") {
  tests::Random random{1};
  std::size_t found = 0;
  for (int round = 0; round < 2'000; ++round) {
    std::vector<std::uint32_t> text(random.below(40));
    for (std::uint32_t& letter : text)
      letter = static_cast<std::uint32_t>(random.below(1 + static_cast<std::size_t>(round % 3)));
    const std::vector<PeriodicPart> parts = periodic_parts(text);
    found += parts.size();
    REQUIRE(parts == by_definition(text));
  }
  CHECK(found > 9'000);
}

}  // namespace tidepool::repeats_test
