// CUDA's stream-ordered pool: its documented rules, each tested where it applies and where it does not.
#include <fmt/format.h>

#include "policies/pool/cuda_async/cuda_async_pool.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/unit/pool_fixture.hpp"

namespace tidepool::cuda_async_test {

using tidepool::testing::PoolUnderTest;

namespace {

/// op0 (10 us, main stream) writes a, which is freed; op1 runs on the side stream; then b, of the same size, is
/// requested for op2 on the side stream.
/// @param wait  whether op1 waits for op0
Trace handed_over(bool wait, Nanos side_work) {
  TraceBuilder build;
  const StreamId side = build.stream("1");
  const BufferId a = build.alloc({.size = 32_MiB});
  build.run({.duration = 10_us}, {{a, Access::kWrite}});
  build.free(a);
  build.run({.stream = side, .duration = side_work}, {});
  if (wait) build.order(OpId{0}, OpId{1});
  const BufferId b = build.alloc({.size = 32_MiB, .stream = side});
  build.run({.stream = side, .duration = 1_us}, {{b, Access::kWrite}});
  build.free(b);
  return build.finish();
}

Result run(const Trace& trace, const std::string& options, Bytes capacity = 1_GiB) {
  return simulate(trace, {.pool = fmt::format("cuda-async({})", options), .capacity = capacity});
}

}  // namespace

TEST_CASE("cuda-async takes memory in granules, and a smaller amount if less is left") {
  PoolUnderTest t{"cuda-async", 40_MiB};
  CHECK(t.place(1_B) == Block{0_B, 512_B});
  CHECK(t.device.reserved() == 32_MiB);
  CHECK(t.place(32_MiB) == std::nullopt);
  CHECK(t.place(8_MiB) == Block{512_B, 8_MiB});
  CHECK(t.place(24_MiB) == std::nullopt);
  CHECK(t.place(8_MiB).has_value());
  CHECK(t.device.reserved() == 32_MiB);
}

TEST_CASE("memory that a stream has freed is available to it at once") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 32_MiB});
  build.run({.duration = 10_us}, {{a, Access::kWrite}});
  build.free(a);
  const BufferId b = build.alloc({.size = 32_MiB});
  build.run({.duration = 10_us}, {{b, Access::kWrite}});
  build.free(b);
  const Trace trace = build.finish();
  const Result result =
      run(trace, "follow_event_dependencies=off,allow_opportunistic=off,allow_internal_dependencies=off");
  CHECK(result.totals.footprint == 32_MiB);
  CHECK(result.totals.makespan == 20_us);
}

TEST_CASE("another stream gets freed memory after it has waited for the free by an event") {
  const std::string only = "allow_opportunistic=off,allow_internal_dependencies=off";
  CHECK(run(handed_over(true, 1_us), only).totals.footprint == 32_MiB);
  CHECK(run(handed_over(false, 1_us), only).totals.footprint == 64_MiB);
  CHECK(run(handed_over(true, 1_us), only + ",follow_event_dependencies=off").totals.footprint == 64_MiB);
}

TEST_CASE("another stream gets freed memory opportunistically once the freeing stream has passed the free") {
  const std::string only = "follow_event_dependencies=off,allow_internal_dependencies=off";
  CHECK(run(handed_over(false, 10_us), only).totals.footprint == 32_MiB);
  CHECK(run(handed_over(false, 9_us), only).totals.footprint == 64_MiB);
  CHECK(run(handed_over(false, 10_us), only + ",allow_opportunistic=off").totals.footprint == 64_MiB);
}

TEST_CASE("when the device refuses, another stream gets freed memory and waits for the free") {
  const Result waits = run(handed_over(false, 1_us), "", 63_MiB);
  CHECK(waits.outcome == Outcome::kOk);
  CHECK(waits.totals.footprint == 32_MiB);
  CHECK(waits.totals.makespan == 11_us);
  CHECK(run(handed_over(false, 1_us), "", 64_MiB).totals.makespan == 10_us);
  CHECK(run(handed_over(false, 1_us), "allow_internal_dependencies=off", 63_MiB).outcome != Outcome::kOk);
}

TEST_CASE("a block that several streams have used is free when all of them have passed its free") {
  for (const auto& [now, again] : {std::pair{99_ns, false}, std::pair{100_ns, true}}) {
    PoolUnderTest t{"cuda-async", 1_GiB};
    const Block block = t.place(32_MiB).value();
    t.give_back(block, {{StreamId{1}, 100_ns}});
    CHECK((t.place(32_MiB, 0, now) == block) == again);
  }
}

TEST_CASE("when the host waits, unused memory is released down to the threshold") {
  for (const auto& [options, left] :
       {std::pair{"", 64_MiB}, std::pair{"(release_threshold=95MiB)", 64_MiB},
        std::pair{"(release_threshold=96MiB)", 96_MiB}, std::pair{"(release_threshold=1GiB)", 160_MiB}}) {
    PoolUnderTest t{fmt::format("cuda-async{}", options), 1_GiB};
    const Block a = t.place(64_MiB).value(), b = t.place(64_MiB).value(), c = t.place(32_MiB).value();
    t.pool->release(b);
    CHECK(t.device.reserved() == 160_MiB);
    t.pool->release(c);
    t.pool->synchronized({}, {});
    CHECK(t.device.reserved() == left);
    CHECK(a.size == 64_MiB);
  }
}

TEST_CASE("in a run, memory is released when the host waits") {
  for (const auto& [waits, footprint] : {std::pair{true, 64_MiB}, std::pair{false, 96_MiB}}) {
    TraceBuilder build;
    const BufferId a = build.alloc({.size = 32_MiB});
    build.run({.duration = 10_us}, {{a, Access::kWrite}});
    build.free(a);
    if (waits) build.run({.kind = OpKind::kHostWait}, {});
    const BufferId b = build.alloc({.size = 64_MiB});
    build.run({.duration = 10_us}, {{b, Access::kWrite}});
    build.free(b);
    CHECK(run(build.finish(), "").totals.footprint == footprint);
  }
}

TEST_CASE("a stream that waits for a second one is also ordered after the streams that the second one has waited for") {
  // Events order the streams 0 -> 1 -> 2.
  TraceBuilder build;
  const StreamId one = build.stream("1"), two = build.stream("2");
  build.run({}, {});
  build.run({.stream = one}, {});
  build.order(OpId{0}, OpId{1});
  build.run({}, {});
  build.run({.stream = two}, {});
  build.order(OpId{1}, OpId{3});
  const Trace trace = build.finish();
  StreamOrder order{trace};
  order.issue_up_to(OpId{3});
  const std::uint32_t point = order.issued(StreamId{0});
  CHECK(point == 3);
  CHECK_FALSE(order.after(two, StreamId{0}, 1));
  order.issue_up_to({});
  CHECK(order.after(two, StreamId{0}, 1));
  CHECK_FALSE(order.after(two, StreamId{0}, point));
  CHECK(order.after(StreamId{0}, StreamId{0}, point));
  order.issue_up_to(OpId{1});
  CHECK_FALSE(order.after(two, StreamId{0}, 1));
}

}  // namespace tidepool::cuda_async_test
