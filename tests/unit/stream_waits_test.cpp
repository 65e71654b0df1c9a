// The limit of overhead of steps of several streams.
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

using namespace tidepool;

namespace {

RunSpec counted(Bytes capacity, const char* policy = "none") {
  return {.pool = "ideal", .policy = policy, .capacity = capacity, .machine = tests::byte_per_nano()};
}

/// One stream writes a in 100 ns, which the other one reads in 5 ns; b has a's size.
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

TEST_CASE("waits of streams for each other are no overhead") {
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
  CHECK(result.message == "recomputation and stalls exceed 205 ns of the step's 110 ns before op 2 of 3");
}
