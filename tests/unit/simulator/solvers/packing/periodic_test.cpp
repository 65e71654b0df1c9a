#include "simulator/solvers/packing/periodic.hpp"

#include "simulator/planner.hpp"
#include "simulator/solvers/packing/lifetimes.hpp"
#include "simulator/solvers/packing/pack_loop.hpp"
#include "tests/catch.hpp"
#include "tests/random_instance.hpp"
#include "tests/refusal.hpp"
#include "traces/builder.hpp"

namespace tidepool::periodic_test {

namespace {

/// `iterations` times: two activations of 3 and 4 B, one after the other, and a new version of 5 B that is made before
/// the version of the previous iteration is freed. 7 B stay all the time.
///   event 0: new version; 1: free the old one (in the first iteration, a block from before the recording);
///   2: +3 B; 3: -3 B; 4: +4 B; 5: -4 B
Trace loop_trace(int iterations) {
  TraceBuilder build;
  build.existing({.size = 7_B});
  BufferId version = build.existing({.size = 5_B});
  for (int i = 0; i < iterations; ++i) {
    const BufferId next = build.alloc({.size = 5_B});
    build.free(version);
    version = next;
    for (const Bytes size : {3_B, 4_B}) build.free(build.alloc({.size = size}));
  }
  return build.finish();
}

}  // namespace

TEST_CASE("the loop of a recording is found, with the blocks that live across its end and those that stay") {
  // The first free is of a buffer from before the recording, so the loop begins behind it, at event 2.
  const SteadyLoop loop = find_loop(loop_trace(20), 0);
  REQUIRE(loop.found());
  CHECK(loop.length == 6);
  CHECK(loop.first == 2);
  CHECK(loop.last == 120);
  CHECK(loop.arcs == std::vector<SteadyLoop::Arc>{{3_B, 0, 1}, {4_B, 2, 1}, {5_B, 4, 7}});
  CHECK(loop.persistent == std::vector<std::uint32_t>{0});
  CHECK(loop.copies() == 2);
}

TEST_CASE("a block that lives across the end of the circle is one item with two intervals") {
  const Trace trace = loop_trace(20);
  const Instance circle = on_circle(find_loop(trace, 0), trace, 1_B);
  check(circle);
  REQUIRE(circle.items.size() == 7);  // 3 arcs in 2 copies, and the bytes that stay
  const auto lives = [&](std::size_t item) {
    const std::span<const Interval> all = circle.lives(circle.items[item]);
    return std::vector<Interval>{all.begin(), all.end()};
  };
  CHECK(lives(0) == std::vector<Interval>{{0, 1}});
  CHECK(lives(2) == std::vector<Interval>{{4, 11}});
  CHECK(lives(3) == std::vector<Interval>{{6, 7}});
  CHECK(lives(5) == std::vector<Interval>{{0, 5}, {10, 12}});
  CHECK(lives(6) == std::vector<Interval>{{0, 12}});
  CHECK(circle.items[6].fixed == 0_B);
  CHECK(load_of(circle) == 17_B);  // 7 + 5 + 5 B: both versions are live for a moment
}

TEST_CASE("a layout of the circle fits every iteration, and a check finds a wrong one") {
  const Trace trace = loop_trace(20);
  const SteadyLoop loop = find_loop(trace, 0);
  const Instance circle = on_circle(loop, trace, 1_B);
  // Versions alternate between 7 and 12. Activations are above both.
  const std::vector<Bytes> offsets{17_B, 17_B, 7_B, 17_B, 17_B, 12_B, 0_B};
  CHECK(verified_height(circle, offsets) == 21_B);
  // The loop has 118 events; 59 of them are allocs. The 7 B and one version exist before the loop.
  const LoopReplay good = replay_loop(trace, 0, loop, circle, offsets);
  CHECK(good.overlaps == 0);
  CHECK(good.misses == 0);
  CHECK(good.served == 59 + 2);
  std::vector<Bytes> wrong = offsets;
  wrong[5] = 7_B;  // both versions have one place
  CHECK(replay_loop(trace, 0, loop, circle, wrong).overlaps > 0);
}

TEST_CASE("sizes on the circle are multiples of the granule") {
  const Trace trace = loop_trace(20);
  const Instance circle = on_circle(find_loop(trace, 0), trace, 512_B);
  for (const Item& item : circle.items) CHECK((item.size == 512_B && item.alignment == 512_B));
}

TEST_CASE("no loop is found in a recording without one, and a leak is reported") {
  TraceBuilder once;
  once.free(once.alloc({.size = 3_B}));
  CHECK(find_loop(once.finish(), 0).length == 0);
  TraceBuilder leak;
  for (int i = 0; i < 30; ++i) {
    leak.alloc({.size = 9_B});
    leak.free(leak.alloc({.size = 3_B}));
  }
  const SteadyLoop loop = find_loop(leak.finish(), 0);
  CHECK(loop.length == 3);
  CHECK_FALSE(loop.found());
  CHECK(loop.left_behind == std::vector<std::uint32_t>{0});
}

TEST_CASE("a repeated step keeps the buffers that exist before and after it") {
  TraceBuilder build;
  build.existing({.size = 7_B});                         // stays
  const BufferId input = build.existing({.size = 5_B});  // a new one for each iteration
  build.free(build.alloc({.size = 3_B}));
  build.free(input);
  build.alloc({.size = 2_B});  // is never freed
  const Trace thrice = repeat_lifetimes(build.finish(), 3);
  REQUIRE(thrice.buffers().size() == 1 + 3 * 3);
  int existing = 0, staying = 0, allocs = 0, frees = 0;
  for (const Buffer& buffer : thrice.buffers()) existing += buffer.born_before, staying += buffer.outlives;
  for (const Event& event : thrice.events())
    allocs += event.kind == EventKind::kAlloc, frees += event.kind == EventKind::kFree;
  CHECK(existing == 2);
  CHECK(staying == 2);  // 7 B, and 2 B of the last iteration
  CHECK(allocs == 8);
  CHECK(frees == 8);
  CHECK(thrice.data().marks.size() == 3);
  CHECK(thrice.ideal_peak() == 15_B);
}

TEST_CASE("a repeated step is a loop of its own length") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    const Trace step = tests::random_trace(seed, 80);
    const Trace many = repeat_lifetimes(step, 8);
    const SteadyLoop loop = find_loop(many, 0);
    REQUIRE(loop.found());
    CHECK(loop.copies() == 1);
    const Instance circle = on_circle(loop, many, 1_B);
    check(circle);
    // All buffers one above the other are a valid layout.
    std::vector<Bytes> offsets;
    Bytes top;
    for (const Item& item : circle.items) offsets.push_back(std::exchange(top, top + item.size));
    for (std::size_t i = 0; i < circle.items.size(); ++i)
      if (circle.items[i].fixed) offsets[i] = top + *circle.items[i].fixed;
    const LoopReplay replay = replay_loop(many, 0, loop, circle, offsets);
    CHECK(replay.misses == 0);
    CHECK(replay.overlaps == 0);
  }
}

TEST_CASE("too many iterations, or buffers of all iterations, are refused with their numbers") {
  TraceBuilder build;
  for (int i = 0; i < 10; ++i) build.existing({.size = 1_B});  // stay
  build.free(build.alloc({.size = 1_B}));
  const Trace step = build.finish();
  const auto complaint = [&](int times) { return tests::refusal([&] { repeat_lifetimes(step, times); }); };
  CHECK(complaint(49'999'991) ==
        "--iterations: '49999991' makes 50000001 buffers; expected 1 to 50000000 iterations and at most 50000000 "
        "buffers");
  CHECK(complaint(0) ==
        "--iterations: '0' makes 10 buffers; expected 1 to 50000000 iterations and at most 50000000 buffers");
  CHECK(repeat_lifetimes(step, 3).buffers().size() == 13);
  CHECK_THAT(tests::refusal([] { repeat_lifetimes(TraceBuilder{}.finish(), 50'000'001); }),
             ContainsSubstring("--iterations: '50000001' makes 0 buffers; "));
}

namespace {

LoopPacking by_smartpool(const Trace& trace) {
  const PoolInfo& info = find_pool("smartpool");
  return pack_loop(trace, find_loops(trace), info, Options{info.name, info.options, {}}, {}, {});
}

/// 13 iterations, each of which allocates and frees 60 blocks of 1, 2, ... times `least`. SmartPool needs 60 times
/// `least` for them.
void add_loop(TraceBuilder& build, Bytes least, std::uint16_t device) {
  for (int i = 0; i < 13; ++i)
    for (int block = 1; block <= 60; ++block) build.free(build.alloc({.size = least * block, .device = device}));
}

}  // namespace

TEST_CASE("bytes as SmartPool's authors count them are added up over the devices") {
  TraceBuilder build;
  add_loop(build, 1_KiB, 0);
  add_loop(build, 1_B, 2);
  const LoopPacking packing = by_smartpool(build.finish());
  CHECK(packing.count == LoopCount::kCounted);
  CHECK(packing.bytes == 60_KiB + 60_B);
  CHECK(packing.period == 120 + 120);
}

TEST_CASE("bytes as SmartPool's authors count them are no result if it finds no iteration on a device") {
  TraceBuilder build;
  build.free(build.alloc({.size = 100_B}));
  LoopPacking packing = by_smartpool(build.finish());
  CHECK(packing.count == LoopCount::kReserved);
  CHECK(packing.bytes == packing.packing.height);
  CHECK(packing.period == 0);
  TraceBuilder two;
  add_loop(two, 1_KiB, 0);
  two.free(two.alloc({.size = 100_B, .device = 1}));
  packing = by_smartpool(two.finish());
  CHECK(packing.count == LoopCount::kReserved);
  CHECK(packing.bytes == packing.packing.height);
}

}  // namespace tidepool::periodic_test
