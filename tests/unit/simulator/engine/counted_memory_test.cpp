// Steps of several streams on a pool without addresses, and their limit of overhead.
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

namespace tidepool::counted_memory_test {

namespace {

RunSpec counted(Bytes capacity, const char* policy = "none") {
  return {.pool = "ideal", .policy = policy, .capacity = capacity, .machine = tests::byte_per_nano()};
}

/// One stream writes 8 B in 100 ns, a second one 8 B in 30 ns. Both buffers are freed. A third stream writes `size`
/// bytes in 90 ns.
Trace third_stream(Bytes size) {
  TraceBuilder build;
  const StreamId second = build.stream("1"), third = build.stream("2");
  const BufferId slow = build.alloc({.size = 8_B});
  build.run({.duration = 100_ns}, {{slow, Access::kWrite}});
  const BufferId quick = build.alloc({.size = 8_B, .stream = second});
  build.run({.stream = second, .duration = 30_ns}, {{quick, Access::kWrite}});
  build.free(slow);
  build.free(quick);
  const BufferId last = build.alloc({.size = size, .stream = third});
  build.run({.stream = third, .duration = 90_ns}, {{last, Access::kWrite}});
  build.free(last);
  return build.finish();
}

/// One stream writes a (100 B) in 100 ns, then b (100 B) in 10 ns; b is freed. The other stream reads a in 5 ns.
Trace waiting_streams() {
  TraceBuilder build;
  const StreamId side = build.stream("1");
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = 100_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.stream = side, .duration = 5_ns}, {{a, Access::kRead}});
  build.free(a);
  return build.finish();
}

}  // namespace

TEST_CASE("without a limit, a step of several streams takes its own time on counted bytes") {
  const Result result = simulate(third_stream(8_B), counted(kNoLimit));
  CHECK(result.totals.makespan == 100_ns);
  CHECK(result.totals.stall.compute == 0_ns);
}

TEST_CASE("a buffer first takes counted bytes that no stream uses, then those that may be written soonest") {
  CHECK(simulate(third_stream(8_B), counted(24_B)).totals.makespan == 100_ns);   // 8 B that were never used: 0 to 90 ns
  CHECK(simulate(third_stream(8_B), counted(16_B)).totals.makespan == 120_ns);   // the quick op's 8 B: 30 to 120 ns
  CHECK(simulate(third_stream(12_B), counted(20_B)).totals.makespan == 120_ns);  // 4 B and the quick op's 8 B
  CHECK(simulate(third_stream(9_B), counted(16_B)).totals.makespan == 190_ns);   // a byte of the slow op: 100 to 190 ns
}

TEST_CASE("counted bytes of several streams are written after the swap-out that frees them") {
  // b takes the place of a, which is swapped out from 100 to 200 ns. b takes 10 ns, a's swap-in 100 ns, the last op 5
  // ns.
  const Trace trace = waiting_streams();
  const Result result = simulate(trace, counted(100_B, "lru-swap"), true);
  CHECK(result.totals.makespan == 315_ns);
  CHECK(replay(trace, counted(100_B, "lru-swap"), result.realised) == result.totals);
}

TEST_CASE("time in which streams wait for each other is no overhead") {
  const Trace trace = waiting_streams();  // takes 110 ns; the second stream waits for 100 of them
  RunSpec spec = counted(200_B, "lru-swap");
  spec.overhead_limit = 1;
  CHECK(simulate(trace, spec).outcome == Outcome::kOk);
  spec.capacity = 100_B;  // takes 315 ns
  spec.overhead_limit = 1 + 206.0 / 110;
  CHECK(simulate(trace, spec).outcome == Outcome::kOk);
  spec.overhead_limit = 1 + 204.0 / 110;
  const Result result = simulate(trace, spec);
  CHECK(result.outcome == Outcome::kTimeLimit);
  CHECK(result.message ==
        "recomputation and stalls take 205 ns beside the step's 110 ns, more than the limit allows, before op 2 of 3");
}

}  // namespace tidepool::counted_memory_test
