// Blocks that other streams have used are free again when those streams have ended their uses.
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/unit/pool_fixture.hpp"

namespace tidepool::caching_events_test {

using tidepool::testing::PoolUnderTest;

namespace {

constexpr StreamId kOne{1}, kTwo{2};

}  // namespace

TEST_CASE("a block is free again at the first request after the last stream that used it has ended its use") {
  for (const std::string pool : {"pytorch", "pytorch-expandable"}) {
    INFO(pool);
    PoolUnderTest t{pool, 1_GiB};
    const Block block = t.place(20_MiB).value();
    t.give_back(block, {{kOne, 50_ns}, {kTwo, 100_ns}});
    const Block other = t.place(20_MiB, 0, 99_ns).value();
    CHECK(other != block);
    CHECK(t.place(20_MiB, 0, 100_ns) == block);
    CHECK(t.device.reserved() == 40_MiB);
  }
}

TEST_CASE("a block that no other stream has used is free at once") {
  PoolUnderTest t{"pytorch", 1_GiB};
  const Block block = t.place(20_MiB).value();
  t.give_back(block, {});
  CHECK(t.place(20_MiB) == block);
}

TEST_CASE("an event that is not complete delays later events of its stream, and no others") {
  PoolUnderTest t{"pytorch", 1_GiB};
  const Block first = t.place(20_MiB).value(), second = t.place(22_MiB).value(), third = t.place(24_MiB).value();
  t.give_back(first, {{kOne, 100_ns}});
  t.give_back(second, {{kOne, 10_ns}});
  t.give_back(third, {{kTwo, 10_ns}});
  CHECK(t.place(24_MiB, 0, 50_ns) == third);
  CHECK(t.place(22_MiB, 0, 50_ns) != second);
  CHECK(t.place(22_MiB, 0, 100_ns) == second);
}

TEST_CASE("when the device refuses, the allocator waits for all events before it gives up") {
  PoolUnderTest t{"pytorch", 44_MiB};
  const Block block = t.place(20_MiB).value(), small = t.place(20_MiB).value();
  t.give_back(block, {{kOne, 1'000_ns}});
  // 20 + 20 + 24 MiB are too many. Waiting frees 20 MiB, a whole segment, which returns to the device.
  CHECK(t.place(24_MiB, 0, 1_ns).has_value());
  CHECK(t.device.reserved() == 44_MiB);
  t.give_back(small, {{kOne, 2'000_ns}});
  CHECK(t.place(26_MiB, 0, 1_ns) == std::nullopt);
}

TEST_CASE("in a run the side stream's work decides whether its input can be reused") {
  // op0 0-10 us writes a on the main stream; op1 reads it on the side stream, from 10 us on; a is freed; op2 keeps the
  // main stream busy until 30 us; then b is requested.
  for (const auto& [side_work, footprint] : {std::pair{20_us, 20_MiB}, std::pair{21_us, 40_MiB}}) {
    TraceBuilder build;
    const StreamId side = build.stream("1");
    const BufferId a = build.alloc({.size = 20_MiB});
    build.run({.duration = 10_us}, {{a, Access::kWrite}});
    build.run({.stream = side, .duration = side_work}, {{a, Access::kRead}});
    build.free(a);
    build.run({.duration = 20_us}, {});
    const BufferId b = build.alloc({.size = 20_MiB});
    build.run({.duration = 5_us}, {{b, Access::kWrite}});
    build.free(b);
    const Trace trace = build.finish();
    RunSpec spec{.pool = "pytorch"};
    CHECK(simulate(trace, spec).totals.footprint == footprint);
    // With memory for one block only, the allocator waits, and so does the op that uses the block.
    spec.capacity = 20_MiB;
    const Result tight = simulate(trace, spec);
    CHECK(tight.outcome == Outcome::kOk);
    CHECK(tight.totals.makespan == 10_us + side_work + 5_us);
  }
}

TEST_CASE("a buffer's list of streams is kept when an op updates the buffer in place") {
  // The side stream updates a, which was allocated for the main stream. The main stream's last use of a ends before the
  // side stream's work.
  TraceBuilder build;
  const StreamId side = build.stream("1");
  const BufferId a = build.alloc({.size = 20_MiB});
  build.run({.duration = 10_us}, {{a, Access::kWrite}});
  build.run({.stream = side, .duration = 1_us}, {{a, Access::kReadWrite}});
  build.run({.duration = 1_us}, {{a, Access::kReadWrite}});
  build.run({.stream = side, .duration = 100_us}, {});
  build.free(a);
  const BufferId b = build.alloc({.size = 20_MiB});
  build.run({.duration = 5_us}, {{b, Access::kWrite}});
  build.free(b);
  const Trace trace = build.finish();
  // The event is recorded behind 100 us of other work on the side stream.
  CHECK(simulate(trace, {.pool = "pytorch"}).totals.footprint == 40_MiB);
}

}  // namespace tidepool::caching_events_test
