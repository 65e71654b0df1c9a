// The bound of a step of several streams by its busiest one. A contract test compares it with the optima of tiny steps.
#include <map>
#include <string>

#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::one_stream_test {

namespace {

enum class Side : std::uint8_t { kApart, kReads, kUpdates, kOverwrites };

/// On the busiest stream, after an op of 5 us on the other one: op 1 makes a (100 B) in 10 us, op 2 makes b (100 B) in
/// 2 us, and the last op reads a in 10 us. In between, the other stream may use a.
Trace step(Side side, OpKind kind = OpKind::kKernel) {
  TraceBuilder build;
  const StreamId other = build.stream("1");
  build.run({.stream = other, .duration = 5_us}, {});
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = 10_us}, {{a, Access::kWrite}});
  build.order(OpId{0}, OpId{1});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.duration = 2_us}, {{b, Access::kWrite}});
  build.free(b);
  const Access access = side == Side::kReads     ? Access::kRead
                        : side == Side::kUpdates ? Access::kReadWrite
                                                 : Access::kWrite;
  if (side != Side::kApart) build.run({.stream = other, .kind = kind, .duration = 1_us}, {{a, access}});
  build.run({.duration = 10_us}, {{a, Access::kRead}});
  build.free(a);
  return build.finish();
}

/// The bound at 150 B on a link that takes 5 us for 100 B in each direction; none if it is 0.
Nanos bound_of(const Trace& trace, bool remat = false) {
  Machine machine;
  machine.h2d = machine.d2h = {.rate = BytesPerSecond{20'000'000}, .latency = 0_us};
  for (const Bound& bound : compute_bounds(
           {.trace = trace, .machine = machine, .capacity = 150_B, .swap = true, .remat = remat}, BoundEffort::kQuick))
    if (bound.name == "one-stream") return bound.makespan;
  return {};
}

}  // namespace

TEST_CASE("a step of several streams takes at least the time of its part on the busiest stream") {
  // While b is there, a is not: 5 us out before op 2, 5 us back, of which op 2 hides 2 us at most (rates are rounded).
  for (const Side side : {Side::kApart, Side::kReads, Side::kUpdates}) {
    CHECK(bound_of(step(side)) <= 5_us + 10_us + 2_us + 10_us + 8_us);
    CHECK(bound_of(step(side)) > 35_us - 10_ns);
  }
}

TEST_CASE("content that another stream brings back costs the busiest stream nothing") {
  CHECK(bound_of(step(Side::kOverwrites)) == 0_us);
  CHECK(bound_of(step(Side::kUpdates), true) == 0_us);  // the update may run again
  // A source runs once: a must be copied, or op 1 must run again.
  CHECK(bound_of(step(Side::kUpdates, OpKind::kSource), true) > 27_us);
}

}  // namespace tidepool::one_stream_test
