// STAlloc's memory layers and its reuse of idle ranges, compared with layouts that are derived by hand.
#include <limits>

#include "policies/pool/stalloc/stalloc_pool.hpp"
#include "simulator/solvers/packing/heuristic.hpp"
#include "tests/catch.hpp"
#include "tests/unit/pool_fixture.hpp"

namespace tidepool::stalloc_test {

namespace {

struct Life {
  Bytes size;
  std::int64_t lower, upper;
};

Layout plan(const std::vector<Life>& lives) {
  Instance instance;
  for (const Life& life : lives) instance.add(life.size, life.lower, life.upper);
  return StallocPlanner{}.plan(instance, {});
}

std::vector<Bytes> offsets_of(const std::vector<Life>& lives) { return plan(lives).offsets; }

}  // namespace

TEST_CASE("STAlloc stacks blocks that live all the time, then the layers of each size, the largest size first") {
  // The block of 3 B lives from the first position to the last. The two blocks of 8 B share a layer, one after the
  // other.
  CHECK(offsets_of({{8_B, 2, 4}, {3_B, 0, 9}, {8_B, 5, 8}, {4_B, 2, 8}}) == std::vector{3_B, 0_B, 3_B, 11_B});
}

TEST_CASE("a block joins the layer whose last block ended latest") {
  // When the third block begins at 6, the first layer has been idle since 3, and the second one since 5. The block
  // joins the second layer, so the first one stays idle. The block of 4 B fits at the bottom of the first layer.
  CHECK(offsets_of({{8_B, 1, 3}, {8_B, 2, 5}, {8_B, 6, 9}, {4_B, 4, 8}, {1_B, 0, 10}}) ==
        std::vector{1_B, 9_B, 9_B, 1_B, 0_B});
}

TEST_CASE("smaller blocks are stacked in the idle time of a layer, and holes below them stay empty") {
  // All three fit into the 8 B of the layer before position 10. The second block lies above the first. When the third
  // one begins, the first has ended and left a hole. The third one does not use this hole, but lies above the second.
  CHECK(offsets_of({{8_B, 10, 12}, {3_B, 1, 4}, {3_B, 2, 8}, {2_B, 5, 7}, {1_B, 0, 13}}) ==
        std::vector{1_B, 1_B, 4_B, 7_B, 0_B});
}

TEST_CASE("in a layer, a small block may begin where a large one ends, but must end two positions before the next") {
  CHECK(plan({{8_B, 4, 6}, {4_B, 1, 4}, {1_B, 0, 9}}).height == 13_B);
  CHECK(plan({{8_B, 4, 6}, {4_B, 1, 3}, {1_B, 0, 9}}).height == 13_B);
  CHECK(plan({{8_B, 4, 6}, {4_B, 1, 2}, {1_B, 0, 9}}).height == 9_B);
  CHECK(plan({{8_B, 4, 6}, {4_B, 6, 8}, {1_B, 0, 9}}).height == 9_B);
}

TEST_CASE("STAlloc's plans work with the first and the last possible position") {
  constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min(),
                         kLast = std::numeric_limits<std::int64_t>::max();
  // Two layers of 8 B, and a block of 4 B that is live with both, so it needs a place of its own.
  CHECK(plan({{8_B, kFirst, kFirst + 5}, {8_B, kFirst, kFirst + 9}, {4_B, kFirst, kFirst + 7}}).height == 16_B + 4_B);
  CHECK(plan({{8_B, kLast - 9, kLast}, {8_B, kLast - 5, kLast}, {4_B, kLast - 7, kLast}}).height == 16_B + 4_B);
}

TEST_CASE("if no layer takes the block at a position of the order, a rehearsal moves this position to the front") {
  // One layer of 8 B is idle until 20. The five blocks of 5 B, numbered from 0, form the rows {0}, {1}, {2, 3, 4}, so
  // the order is 0 1 2 3 4. In the first rehearsal, the layer takes blocks 0, 3 and 4. It does not take positions 1 and
  // 2, which move to the front: 1 2 0 3 4. In the second rehearsal, it does not take positions 1 and 2 either. STAlloc
  // takes these numbers for blocks 1 and 2, so the order stays. Block 1 is placed first; 0 and 2 need new layers.
  const std::vector<Life> lives{{8_B, 20, 22}, {5_B, 1, 3},   {5_B, 2, 4}, {5_B, 2, 5},
                                {5_B, 6, 8},   {5_B, 10, 12}, {1_B, 0, 30}};
  CHECK(offsets_of(lives) == std::vector{1_B, 9_B, 1_B, 14_B, 1_B, 1_B, 0_B});
}

TEST_CASE("STAlloc's pool gives planned places in one segment, and other requests go to PyTorch's allocator") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 4_MiB});
  build.run({.name = {}, .phase = Phase::kForward, .duration = 1_ns}, {{a, Access::kWrite}});
  build.free(a);
  const BufferId b = build.alloc({.size = 2_MiB});
  build.run({.name = {}, .phase = Phase::kForward, .duration = 1_ns}, {{b, Access::kWrite}});
  build.free(b);
  const Trace trace = build.finish();
  const PoolInfo& info = find_pool("stalloc");
  const std::unique_ptr<Pool> pool = info.make(Options{info.name, info.options, {}});
  SegmentDevice device{64_MiB};
  pool->start(trace, 64_MiB, device);

  const Request first{.size = 4_MiB, .version = trace.first_version(a), .before = OpId{0U}};
  const Block planned = pool->place(first).value();
  CHECK(planned.size == 4_MiB);
  // The planned place is in use, and no range of the segment is free. So PyTorch's allocator reserves 20 MiB for the
  // request, which is below 10 MiB.
  const Block other = pool->place(first).value();
  CHECK((other.offset + other.size <= planned.offset || planned.offset + planned.size <= other.offset));
  pool->release(other);
  pool->release(planned);
  // From op 1 on, b needs the first 2 MiB of the segment. A request that is not in the plan gets the addresses above
  // them.
  const Block dynamic = pool->place({.size = 1_MiB, .version = {}, .before = OpId{1U}}).value();
  const Block second = pool->place({.size = 2_MiB, .version = trace.first_version(b), .before = OpId{1U}}).value();
  CHECK(second.offset == planned.offset);
  CHECK(dynamic.offset == planned.offset + 2_MiB);
  const auto counts = pool->counts();
  REQUIRE(counts.size() == 3);
  CHECK(counts[0].value == 2);  // planned
  CHECK(counts[1].value == 1);  // in idle ranges
  CHECK(counts[2].value == 1);  // by PyTorch's allocator
}

TEST_CASE("without memory for its plan, STAlloc's pool works like PyTorch's allocator") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 4_MiB});
  build.run({.name = {}, .phase = Phase::kForward, .duration = 1_ns}, {{a, Access::kWrite}});
  const Trace trace = build.finish();
  const PoolInfo& info = find_pool("stalloc");
  const std::unique_ptr<Pool> pool = info.make(Options{info.name, info.options, {}});
  SegmentDevice device{3_MiB};
  pool->start(trace, 3_MiB, device);
  CHECK(pool->place({.size = 1_MiB, .version = {}, .before = OpId{0U}}).has_value());
  CHECK_FALSE(pool->place({.size = 4_MiB, .version = {}, .before = OpId{0U}}).has_value());
  CHECK(pool->counts()[2].value == 1);
}

}  // namespace tidepool::stalloc_test
