// Coop against closed forms: adjacent buffers are evicted together.
#include <tuple>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/unit/pool_fixture.hpp"
#include "traces/builder.hpp"

namespace tidepool::coop_test {

using tidepool::testing::PoolUnderTest;

namespace {

/// Four buffers of 1 KiB, made in a row by ops of 10, 1, 1 and 10 us, then one of 2 KiB; then all four are read. The
/// two that are cheap per byte and staleness are adjacent, and are evicted before the expensive ones.
Trace row_of_four(std::initializer_list<std::int64_t> microseconds = {10, 1, 1, 10}) {
  TraceBuilder build;
  std::vector<BufferId> row;
  for (const std::int64_t us : microseconds) {
    row.push_back(build.alloc({.size = 1_KiB}));
    build.run({.duration = Nanos{us * 1'000}}, {{.buffer = row.back(), .access = Access::kWrite}});
  }
  const BufferId large = build.alloc({.size = 2_KiB});
  build.run({.duration = 1_us}, {{.buffer = large, .access = Access::kWrite}});
  build.free(large);
  for (const BufferId id : row) build.run({.duration = 1_us}, {{.buffer = id}});
  return build.finish();
}

Result run(const Trace& trace, const std::string& policy, const std::string& pool = "best-fit") {
  const RunSpec spec{.pool = pool, .policy = policy, .capacity = 4_KiB, .machine = {}};
  Result result = simulate(trace, spec, true);
  if (result.outcome == Outcome::kOk) CHECK(replay(trace, spec, result.realised) == result.totals);
  return result;
}

}  // namespace

TEST_CASE("coop evicts the cheapest neighbours for a request that is larger than any single buffer") {
  const Result result = run(row_of_four(), "coop");
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(result.totals.eviction_count == 2);
  CHECK(result.totals.recompute == 2_us);
}

TEST_CASE("a policy that looks at one buffer at a time may evict more than a contiguous range") {
  // The first and the third are cheap, the others are expensive. Any two adjacent ones include an expensive one.
  const Trace trace = row_of_four({1, 10, 1, 20});
  const Result window = run(trace, "coop"), single = run(trace, "dtr-local");
  REQUIRE(window.outcome == Outcome::kOk);
  REQUIRE(single.outcome == Outcome::kOk);
  CHECK(window.totals.eviction_count == 2);
  CHECK(single.totals.eviction_count == 3);
  CHECK(window.totals.recompute == 11_us);
  CHECK(single.totals.recompute == 12_us);
}

TEST_CASE("coop never evicts buffers up to the size in its options") {
  CHECK(run(row_of_four(), "coop(small=1KiB)").outcome == Outcome::kOutOfMemory);
  CHECK(run(row_of_four(), "coop(small=1023B)").outcome == Outcome::kOk);
}

TEST_CASE("a two-ended pool places versions that are cheap to recompute at the high end of the hole") {
  // Per KiB, the five buffers take 1, 20, 1, 10 and 0.5 us to compute. The median is 1 us, so the buffers of 20 and 10
  // us are expensive. The others are cheap: the first op's buffer takes the high end.
  const Result result = run(row_of_four({1, 20, 1, 10}), "none", "two-ended");
  CHECK(result.outcome == Outcome::kOutOfMemory);  // 6 KiB are needed, 4 KiB are there
  const RunSpec spec{.pool = "two-ended", .policy = "none", .capacity = 8_KiB, .machine = {}};
  const Trace trace = row_of_four({1, 20, 1, 10});
  const Result roomy = simulate(trace, spec, true);
  REQUIRE(roomy.outcome == Outcome::kOk);
  std::vector<Bytes> offsets;
  for (const Action& action : roomy.realised.actions)
    if (action.verb == Verb::kAlloc) offsets.push_back(action.offset);
  CHECK(offsets == std::vector<Bytes>{7_KiB, 0_KiB, 6_KiB, 1_KiB, 4_KiB});
}

TEST_CASE("without a limit, a two-ended pool has no high end and takes no more than its buffers need") {
  for (const char* pool : {"two-ended", "two-ended(small=1KiB)", "two-ended(dear=name)"}) {
    const RunSpec spec{.pool = pool, .policy = "none", .machine = {}};
    CHECK(simulate(row_of_four({1, 20, 1, 10}), spec).totals.footprint == 6_KiB);
  }
}

TEST_CASE("a two-ended pool places small buffers in a region of their own while they fit there") {
  PoolUnderTest under{"two-ended(alignment=1B,small=10B,region=15B)", 100_B};
  CHECK(under.place(10_B) == Block{85_B, 10_B});
  CHECK(under.place(11_B) == Block{0_B, 11_B});
  CHECK(under.place(10_B) == Block{11_B, 10_B});
  under.pool->release({85_B, 10_B});
  CHECK(under.place(10_B) == Block{85_B, 10_B});
  CHECK(under.place(5_B) == Block{95_B, 5_B});
  CHECK(under.pool->largest_hole() == 64_B);
}

TEST_CASE("memory that stays free when an eviction makes room counts as fragmentation") {
  // 2 KiB are requested beside four buffers of 1 KiB, and the two cheap ones in the middle are evicted. With a capacity
  // of 5 KiB, 1 KiB stays free.
  for (const auto& [capacity, count, share] : {std::tuple{4_KiB, 1, 0.0}, {5_KiB, 1, 0.2}, {6_KiB, 0, 0.0}}) {
    const RunSpec spec{.pool = "best-fit", .policy = "coop", .capacity = capacity, .machine = {}};
    const Result result = simulate(row_of_four(), spec);
    REQUIRE(result.outcome == Outcome::kOk);
    CHECK(result.evicting_allocations == count);
    CHECK(result.eviction_fragmentation == share);
  }
}

TEST_CASE("the time that policies take to decide is measured on request, and measuring changes no decision") {
  RunSpec spec{.pool = "best-fit", .policy = "coop", .capacity = 4_KiB, .machine = {}};
  const Result plain = simulate(row_of_four(), spec);
  CHECK_FALSE(plain.search.has_value());
  spec.count_search = true;
  const Result measured = simulate(row_of_four(), spec);
  REQUIRE(measured.search.has_value());
  CHECK(*measured.search > 0_ns);
  CHECK(*measured.search < measured.plan_time);
  CHECK(measured.totals == plain.totals);
}

}  // namespace tidepool::coop_test
