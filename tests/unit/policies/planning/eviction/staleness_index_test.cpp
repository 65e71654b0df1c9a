// The staleness index compared with its definition, and division compared with exact arithmetic.
#include "policies/planning/eviction/staleness_index.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "policies/planning/eviction/exact_division.hpp"
#include "tests/catch.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::staleness_index_test {

namespace {

struct Candidate {
  Nanos cost;
  Bytes size;
  Nanos last_access;
  std::uint32_t order;
};

/// A scan in the order of the candidates; it takes the last minimum and stops at the first zero.
std::uint32_t scan(const std::vector<std::optional<Candidate>>& slots, Nanos now) {
  std::vector<std::uint32_t> in_order;
  for (std::uint32_t i = 0; i < slots.size(); ++i)
    if (slots[i]) in_order.push_back(i);
  std::sort(in_order.begin(), in_order.end(), [&](auto a, auto b) { return slots[a]->order < slots[b]->order; });
  std::uint32_t best = StalenessIndex::kNone;
  double least = std::numeric_limits<double>::infinity();
  for (const std::uint32_t i : in_order) {
    const Int128 divisor = static_cast<Int128>(slots[i]->size.count()) * (now - slots[i]->last_access).count();
    const double cost =
        divisor > 0 ? quotient(slots[i]->cost.count(), divisor) : std::numeric_limits<double>::infinity();
    if (cost <= least) best = i, least = cost;
    if (cost == 0) break;
  }
  return best;
}

}  // namespace

TEST_CASE("an exact division rounds once") {
  CHECK(quotient(1, 3) == 1.0 / 3.0);
  CHECK(quotient(0, 7) == 0);
  CHECK(quotient(-6, 4) == -1.5);
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;  // halfway between two doubles: rounds to the even one
  CHECK(quotient(odd, 1) == std::ldexp(1.0, 53));
  CHECK(quotient(odd + 2, 1) == std::ldexp(1.0, 53) + 4);
  const Int128 wide = static_cast<Int128>(1) << 100;
  CHECK(quotient(odd, wide) == std::ldexp(1.0, 53 - 100));
  CHECK(quotient(odd, wide - 1) == std::ldexp(1.0, 53 - 100) * (1 + std::ldexp(1.0, -52)));  // just above halfway
  CHECK(quotient(5, wide) == std::ldexp(5.0, -100));
  CHECK(quotient(std::numeric_limits<std::int64_t>::max(), 1) == std::ldexp(1.0, 63));
}

TEST_CASE("a version is evicted from the time on at which its line of staleness per cost crosses the other version's") {
  // a: 10 B, 5 ns, last used at 0: height 2 t. b: 30 B, 5 ns, last used at 60 ns: height 6 (t - 60). They meet at t =
  // 90. From then on b is evicted. At the meeting point the costs are equal, and b has the larger order.
  StalenessIndex index;
  index.reset(2);
  index.set(0, 5_ns, 10_B, 0_ns, 1);
  index.set(1, 5_ns, 30_B, 60_ns, 2);
  CHECK(index.least(61_ns) == 0);
  CHECK(index.least(89_ns) == 0);
  CHECK(index.least(90_ns) == 1);
  CHECK(index.least(1_ms) == 1);
  index.clear(1);
  CHECK(index.least(1_ms) == 0);
  index.clear(0);
  CHECK(index.least(1_ms) == StalenessIndex::kNone);
}

TEST_CASE("of equal costs the last wins, of zero costs the first, and infinite costs come last") {
  StalenessIndex index;
  index.reset(4);
  index.set(0, 5_ns, 10_B, 0_ns, 7);
  index.set(1, 10_ns, 20_B, 0_ns, 9);
  CHECK(index.least(50_ns) == 1);
  index.set(2, 0_ns, 10_B, 50_ns, 5);  // its cost is 0, but it has just been used: infinite
  CHECK(index.least(50_ns) == 1);
  CHECK(index.least(51_ns) == 2);
  index.set(3, 0_ns, 10_B, 0_ns, 4);
  CHECK(index.least(52_ns) == 3);
  index.set(3, -4_ns, 10_B, 0_ns, 6);  // below zero, but after the zero at which the scan stops
  CHECK(index.least(53_ns) == 2);
  index.set(3, -4_ns, 10_B, 0_ns, 3);
  CHECK(index.least(54_ns) == 3);
  index.reset(2);
  index.set(0, 5_ns, 0_B, 0_ns, 1);
  index.set(1, 5_ns, 0_B, 0_ns, 2);
  CHECK(index.least(9_ns) == 1);
}

TEST_CASE("the index gives the answers of a scan, whatever changes in between") {
  tests::Random random{11};
  for (int round = 0; round < 30; ++round) {
    const std::size_t slots = 1 + random.below(40);
    const bool few_values = round % 2 == 0;  // many ties
    StalenessIndex index;
    index.reset(slots);
    std::vector<std::optional<Candidate>> candidates(slots);
    std::int64_t now = 1;
    std::uint32_t order = 0;
    for (int i = 0; i < 600; ++i) {
      const auto slot = static_cast<std::uint32_t>(random.below(slots));
      if (random.chance(25)) {
        candidates[slot].reset();
        index.clear(slot);
      } else {
        const auto range = [&](std::size_t few, std::size_t many) {
          return static_cast<std::int64_t>(random.below(few_values ? few : many));
        };
        Candidate next{Nanos{range(4, 90'000)}, Bytes{range(4, 70'000'000)},
                       Nanos{now - std::min(now, range(4, 1'000'000))}, ++order};
        if (random.chance(5)) next.cost = -next.cost;
        if (random.chance(10) && candidates[slot]) next.last_access = candidates[slot]->last_access;
        candidates[slot] = next;
        index.set(slot, next.cost, next.size, next.last_access, next.order);
      }
      if (random.chance(50)) now += static_cast<std::int64_t>(random.below(few_values ? 3 : 300'000));
      if (random.chance(60)) REQUIRE(index.least(Nanos{now}) == scan(candidates, Nanos{now}));
    }
  }
}

}  // namespace tidepool::staleness_index_test
