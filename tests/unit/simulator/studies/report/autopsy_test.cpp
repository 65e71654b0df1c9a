#include "simulator/studies/report/autopsy.hpp"

#include <random>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/machines.hpp"

namespace tidepool::autopsy_test {

namespace {

Occupant at(std::uint32_t buffer, std::int64_t offset, std::int64_t held, std::uint32_t next_use, bool needed = false) {
  return {BufferId{buffer}, Bytes{offset}, Bytes{held}, needed, OpId{next_use}};
}

}  // namespace

TEST_CASE("the cheapest window has the fewest bytes, and of equal windows, it is the one whose next use is latest") {
  // 100 B: a is at [0, 30), b at [40, 60), c at [70, 90); the rest is holes.
  std::vector<Occupant> occupants{at(0, 0, 30, 9), at(1, 40, 20, 5), at(2, 70, 20, 6)};
  // For 40 B, either b is evicted from [30, 70) or c from [60, 100). Both have 20 B, and c is used later.
  CHECK(cheapest_window(occupants, 100_B, 40_B).buffers == std::vector{BufferId{2}});
  occupants[1].next_use = OpId{};  // never
  CHECK(cheapest_window(occupants, 100_B, 40_B).buffers == std::vector{BufferId{1}});
  occupants[1].needed = true;
  CHECK(cheapest_window(occupants, 100_B, 40_B).buffers == std::vector{BufferId{2}});
  occupants[2].needed = true;
  // Only the 40 B before b are left: a (30 B) is evicted.
  CHECK(cheapest_window(occupants, 100_B, 40_B).buffers == std::vector{BufferId{0}});
  CHECK(cheapest_window(occupants, 100_B, 40_B).held == 30_B);
  CHECK(cheapest_window(occupants, 100_B, 41_B).buffers.empty());
  CHECK(cheapest_window(occupants, 100_B, 101_B).buffers.empty());
}

TEST_CASE("the cheapest window is as cheap as the best of all windows") {
  std::mt19937 random{1};
  const auto next = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  for (int round = 0; round < 200; ++round) {
    std::vector<Occupant> occupants;
    std::int64_t offset = 0;
    while (offset < 50) {
      offset += next(4);
      const std::int64_t held = 1 + next(7);
      const bool needed = next(8) == 0;
      occupants.push_back(at(static_cast<std::uint32_t>(occupants.size()), offset, held, next(9), needed));
      offset += held;
    }
    const Bytes end{offset + next(3)}, wanted{1 + next(20)};
    std::optional<Bytes> least;
    for (Bytes start; start + wanted <= end; start += 1_B) {
      Bytes held;
      bool needed = false;
      for (const Occupant& o : occupants)
        if (o.offset < start + wanted && o.offset + o.held > start) held += o.held, needed |= o.needed;
      if (!needed && (!least || held < *least)) least = held;
    }
    const Eviction eviction = cheapest_window(occupants, end, wanted);
    CHECK(eviction.held == least.value_or(Bytes{}));
  }
}

TEST_CASE(
    "without addresses, the smallest buffer that is large enough is evicted, and if none is, the largest and more") {
  const std::vector<Occupant> occupants{at(0, -1, 30, 9), at(1, -1, 20, 5), at(2, -1, 50, 6, true), at(3, -1, 5, 6)};
  CHECK(least_buffers(occupants, 15_B).buffers == std::vector{BufferId{1}});
  CHECK(least_buffers(occupants, 33_B).buffers == std::vector{BufferId{0}, BufferId{3}});
  CHECK(least_buffers(occupants, 55_B).held == 55_B);
  CHECK(least_buffers(occupants, 56_B).buffers.empty());
}

TEST_CASE("an autopsy names the request, the buffers by address, and the remedies") {
  // Ten layers of 1000 B: x0 to x5 fit into 6000 B, then op 5 requests x6.
  const Trace trace = tests::chain_trace(10);
  const RunSpec spec{.pool = "best-fit(alignment=8B)", .capacity = 6'000_B, .machine = find_machine("g10-a100")};
  const Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOutOfMemory);
  const auto autopsy = autopsy_of(trace, spec, history_of(trace, spec, result.realised));
  REQUIRE(autopsy);
  CHECK(autopsy->shortage.before == OpId{5});
  CHECK(autopsy->shortage.size == 1'000_B);
  CHECK(autopsy->shortage.held == 6'000_B);
  CHECK(autopsy->shortage.largest_hole == 0_B);
  REQUIRE(autopsy->occupants.size() == 6);
  CHECK(autopsy->needed == 1'000_B);                             // x5
  CHECK(autopsy->eviction.buffers == std::vector{BufferId{0}});  // x0, which is read last
  REQUIRE(!autopsy->remedies.empty());
  CHECK(autopsy->remedies.front().outcome == Outcome::kOk);
  CHECK(autopsy->remedies.front().overhead > 0);
  // x0 to x10 and the first gradient: 12000 B.
  CHECK(trace.ideal_peak() == 12'000_B);
  CHECK(autopsy->least_capacity == 12'000_B);

  const RunSpec enough{.pool = spec.pool, .capacity = 12'000_B, .machine = spec.machine};
  CHECK(!autopsy_of(trace, enough, history_of(trace, enough, simulate(trace, enough, true).realised)));
}

}  // namespace tidepool::autopsy_test
