#include "simulator/solvers/packing/pack.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::pack_test {

namespace {

Packing pack_with(const Trace& trace, const std::string& text, Bytes capacity = kNoLimit) {
  const Spec spec{text};
  const PoolInfo& info = find_pool(spec.name);
  return pack(trace, info, Options{info.name, info.options, spec.options}, {.capacity = capacity});
}

/// Buffers of 1, 2 and 1 KiB. The middle one is freed, and 3 KiB are allocated: 4 KiB are live before, 5 KiB after.
Trace holed() {
  TraceBuilder build;
  build.alloc({.size = 1_KiB});
  const BufferId middle = build.alloc({.size = 2_KiB});
  build.alloc({.size = 1_KiB});
  build.free(middle);
  build.alloc({.size = 3_KiB});
  return build.finish();
}

}  // namespace

TEST_CASE("the memory in a hole that is too small counts as fragmentation") {
  const Packing packing = pack_with(holed(), "best-fit");
  CHECK(packing.outcome == Outcome::kOk);
  CHECK(packing.buffers == 4);
  CHECK(packing.events == 5);
  CHECK(packing.load == 5_KiB);
  CHECK(packing.lower_bound == 5_KiB);
  CHECK(packing.height == 7_KiB);
  CHECK(std::abs(packing.gap() - 0.4) < 1e-12);
  CHECK_FALSE(packing.optimal());
}

TEST_CASE("a height is infinitely far above a bound of nothing") {
  Packing packing;
  CHECK(packing.gap() == 0);
  packing.height = 512_B;
  CHECK(std::isinf(packing.gap()));
}

TEST_CASE("a height equal to the load is optimal, unless the pool only counts bytes") {
  TraceBuilder build;
  build.alloc({.size = 1_KiB});
  build.existing({.size = 1_KiB});
  const Trace trace = build.finish();
  CHECK(pack_with(trace, "best-fit").optimal());
  CHECK(pack_with(trace, "ideal").height == 2_KiB);
  CHECK_FALSE(pack_with(trace, "ideal").optimal());
}

TEST_CASE("a pool that decides as requests come ends at the time limit, with the number of events so far") {
  const PoolInfo& info = find_pool("best-fit");
  const Packing packing = pack(holed(), info, Options{info.name, info.options, {}}, {.time = 0_ms});
  CHECK(packing.outcome == Outcome::kTimeLimit);
  CHECK(packing.message == "0 of 5 events within the time limit");
  CHECK_FALSE(packing.optimal());
}

TEST_CASE("a request without a place is reported, with the largest hole") {
  const Packing packing = pack_with(holed(), "best-fit", 6_KiB);
  CHECK(packing.outcome == Outcome::kOutOfMemory);
  CHECK(packing.message == "buffer 3 of 3072 B finds no place; the largest hole has 2048 B");
  CHECK(pack_with(holed(), "best-fit", 7_KiB).outcome == Outcome::kOk);
}

TEST_CASE("the height of a pool with segments is its reserved memory") {
  CHECK(pack_with(holed(), "pytorch").height == 2_MiB);
  CHECK(pack_with(holed(), "cnmem").height == 256_MiB);
}

TEST_CASE("every device has a pool of its own") {
  TraceBuilder build;
  const BufferId first = build.alloc({.size = 1_KiB, .device = 0});
  build.free(first);
  build.alloc({.size = 2_KiB, .device = 2});
  const Packing packing = pack_with(build.finish(), "best-fit", 2_KiB);
  CHECK(packing.outcome == Outcome::kOk);
  CHECK(packing.load == 3_KiB);
  CHECK(packing.height == 3_KiB);
}

}  // namespace tidepool::pack_test
