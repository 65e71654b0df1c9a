// Times of a pool's requests to the device.
#include <array>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::device_calls_test {

namespace {

const Machine kMachine{.capacity = kNoLimit,
                       .h2d = {},
                       .d2h = {},
                       .segment_alloc = 100_us,
                       .segment_free = 30_us,
                       .page_map = 7_us,
                       .page_unmap = 5_us};

/// op0 (10 us, main stream) writes 25 MiB, which are freed; then op2 (1 us) writes 30 MiB. op1 runs on the side stream.
Trace two_buffers(Nanos side_work) {
  TraceBuilder build;
  const StreamId side = build.stream("1");
  const BufferId a = build.alloc({.size = 25_MiB});
  build.run({.duration = 10_us}, {{a, Access::kWrite}});
  build.free(a);
  build.run({.stream = side, .duration = side_work}, {});
  const BufferId b = build.alloc({.size = 30_MiB});
  build.run({.duration = 1_us}, {{b, Access::kWrite}});
  build.free(b);
  return build.finish();
}

Totals totals_of(const std::string& pool, Bytes capacity, Nanos side_work = {}) {
  const Trace trace = two_buffers(side_work);
  const RunSpec spec{.pool = pool, .capacity = capacity, .machine = kMachine};
  const Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  REQUIRE(replay(trace, spec, result.realised) == result.totals);
  return result.totals;
}

}  // namespace

TEST_CASE("every segment costs a cudaMalloc, and a cudaFree if it must be released before another one is requested") {
  // With memory for both segments (26 and 30 MiB), both are kept. With memory for one, the first is released before the
  // second is requested.
  const Totals both = totals_of("pytorch", 56_MiB);
  CHECK(both.stall.memory == 200_us);
  CHECK(both.makespan == 200_us + 11_us);
  const Totals one = totals_of("pytorch", 55_MiB);
  CHECK(one.stall.memory == 230_us);
  CHECK(one.makespan == 230_us + 11_us);
}

TEST_CASE("cudaFree waits for every stream, cudaMalloc for none") {
  // The side stream works for 400 us, from 100 us on, when the first cudaMalloc has ended.
  CHECK(totals_of("pytorch", 56_MiB, 400_us).makespan == 100_us + 400_us + 100_us);
  // cudaFree begins at 500 us, then cudaMalloc, then op2.
  CHECK(totals_of("pytorch", 55_MiB, 400_us).makespan == 500_us + 30_us + 100_us + 1_us);
}

TEST_CASE("a pool that maps pages pays for every page") {
  // 25 MiB are 2 pages of 20 MiB. After they are freed, 30 MiB fit without a further page.
  const Totals large = totals_of("pytorch-expandable", 40_MiB);
  CHECK(large.stall.memory == 14_us);
  CHECK(large.makespan == 14_us + 11_us);
  // 3 pages of 12 MiB hold 25 MiB, and 30 MiB as well.
  CHECK(totals_of("pytorch-expandable(large_segment_size=12MiB)", 36_MiB).stall.memory == 21_us);
}

TEST_CASE("unmapping pages costs for every page and waits for every stream") {
  // Each stream has a range of its own. Stream 0 needs 1 page of 20 MiB, then stream 1 needs 2. With 59 MiB, the page
  // of stream 0 must be unmapped first.
  TraceBuilder build;
  const StreamId side = build.stream("1");
  const BufferId a = build.alloc({.size = 20_MiB});
  build.run({.duration = 10_us}, {{a, Access::kWrite}});
  build.free(a);
  const BufferId b = build.alloc({.size = 40_MiB, .stream = side});
  build.run({.stream = side, .duration = 1_us}, {{b, Access::kWrite}});
  build.free(b);
  const Trace trace = build.finish();
  RunSpec spec{.pool = "pytorch-expandable", .capacity = 60_MiB, .machine = kMachine};
  CHECK(simulate(trace, spec).totals.makespan == 7_us + 14_us + 10_us);
  spec.capacity = 59_MiB;
  const Totals tight = simulate(trace, spec).totals;
  CHECK(tight.stall.memory == 7_us + 5_us + 14_us);
  CHECK(tight.makespan == 7_us + 10_us + 5_us + 14_us + 1_us);
}

TEST_CASE("pools that never request memory from the device pay nothing") {
  for (const std::string pool : {"ideal", "best-fit", "first-fit"}) CHECK(totals_of(pool, 1_GiB).stall.memory == 0_ns);
}

}  // namespace tidepool::device_calls_test
