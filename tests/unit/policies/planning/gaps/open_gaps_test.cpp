// Finding gaps by slot, compared with a search through all of them.
#include "policies/planning/gaps/open_gaps.hpp"

#include <algorithm>
#include <numeric>

#include "tests/catch.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::open_gaps_test {

using tests::Random;

TEST_CASE("the open gap of a slot is the one that a scan over all gaps finds") {
  Random random{6};
  int found = 0;
  for (int round = 0; round < 40; ++round) {
    const std::uint32_t slots = 1 + static_cast<std::uint32_t>(random.below(40));
    std::vector<Gap> gaps;
    for (std::uint32_t i = 0; i < 30; ++i) {
      const auto release = static_cast<std::uint32_t>(random.below(slots));
      gaps.push_back({.out = {},
                      .in = {},
                      .size = 1_B,
                      .release = release,
                      .due = release + 1 + static_cast<std::uint32_t>(random.below(slots))});
    }
    std::vector<std::uint32_t> order(gaps.size());  // by rank
    std::iota(order.begin(), order.end(), 0u);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    OpenGaps open{gaps, order, slots};
    std::vector<bool> closed(gaps.size());  // by rank
    for (int i = 0; i < 200; ++i) {
      const auto rank = static_cast<std::uint32_t>(random.below(gaps.size()));
      if (!closed[rank])
        open.close(rank);
      else
        open.open_again(rank);
      closed[rank] = !closed[rank];
      const std::size_t slot = random.below(slots);
      std::vector<std::uint32_t> expected, seen;
      for (std::uint32_t r = 0; r < order.size(); ++r) {
        const Gap& gap = gaps[order[r]];
        const bool lasts = (gap.release < slot && slot < gap.due) || slot + slots < gap.due;
        if (lasts && !closed[r]) expected.push_back(r);
      }
      const std::optional<std::uint32_t> first = open.first_in(slot);
      REQUIRE(first.has_value() == !expected.empty());
      if (first) REQUIRE(*first == expected.front());
      open.for_each_in(slot, [&](std::uint32_t r) { seen.push_back(r); });
      std::sort(seen.begin(), seen.end());
      REQUIRE(seen == expected);
      found += first ? 1 : 0;
    }
  }
  CHECK(found > 1'000);
}

}  // namespace tidepool::open_gaps_test
