#include "traces/step/growth.hpp"

#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::growth_test {

namespace {

/// Steps that each make and free `temporary` bytes, and keep what `keep` makes.
struct Steps {
  TraceBuilder build;
  BufferId weight = build.existing({.size = 1000_B, .kind = BufferKind::kParameter});

  BufferId make(Bytes size, const char* line, BufferKind kind = BufferKind::kActivation) {
    const BufferId made = build.alloc({.size = size, .kind = kind, .line = build.text(line)});
    build.run({.name = build.text("aten::mul"), .line = build.text(line)}, {{weight}, {made, Access::kWrite}});
    return made;
  }
  template <class Keep>
  Growth run(int steps, const Keep& keep) {
    for (int i = 0; i < steps; ++i) {
      build.mark(MarkKind::kIteration, std::to_string(i));
      const BufferId temporary = make(500_B, "model.py:1");
      keep(*this, i);
      build.free(temporary);
    }
    build.run({.name = build.text("aten::item")}, {{weight}});
    return find_growth(build.finish());
  }
};

}  // namespace

TEST_CASE("what every step keeps is named by its line, with its bytes, and the newest buffer that stays") {
  BufferId newest;
  Steps five;
  const Growth found = five.run(5, [&](Steps& steps, int i) {
    newest = steps.make(30_B, "train.py:7");
    if (i == 0) steps.make(400_B, "adam.py:3", BufferKind::kOptimizerState);  // made once
    steps.build.free(steps.make(50_B + Bytes{10 * i}, "data.py:2"));          // larger each time, and gone
  });
  CHECK(found.by_iteration);
  CHECK(found.parts() == 5);
  CHECK(found.least == std::vector<Bytes>{1000_B, 1430_B, 1460_B, 1490_B, 1520_B});
  REQUIRE(found.rows.size() == 1);
  CHECK(found.rows[0].cause == "train.py:7");
  CHECK(found.rows[0].bytes == 90_B);
  CHECK(found.rows[0].grew == 3);
  CHECK(found.times() == 3);
  CHECK(found.rows[0].kept == 4);
  CHECK(found.rows[0].newest == newest);
}

TEST_CASE("a cache that is made anew and larger in each step grows, one that is full does not") {
  BufferId cache, full;
  Steps six;
  const Growth found = six.run(6, [&](Steps& steps, int i) {
    const BufferId larger = steps.make(Bytes{100 * (i + 1)}, "cache.py:5");
    if (i > 0) steps.build.free(cache);
    cache = larger;
    if (i < 2) full = steps.make(64_B, "queue.py:9");
  });
  REQUIRE(found.rows.size() == 1);
  CHECK(found.rows[0].cause == "cache.py:5");
  CHECK(found.rows[0].bytes == 400_B);
  CHECK(found.rows[0].newest == cache);
}

TEST_CASE("steps that only free at the end of the program what each of them needs do not hide what they keep") {
  Steps steps;
  std::vector<BufferId> kept;
  for (int i = 0; i < 4; ++i) {
    steps.build.mark(MarkKind::kIteration, std::to_string(i));
    kept.push_back(steps.make(8_B, "train.py:9"));
  }
  for (const BufferId each : kept) steps.build.free(each);
  const Growth found = find_growth(steps.build.finish());
  REQUIRE(found.rows.size() == 1);
  CHECK(found.rows[0].bytes == 16_B);
}

TEST_CASE("a history without ops grows from one series of like allocations to the next") {
  TraceBuilder build;
  const StringId line = build.text("train.py:7");
  for (int i = 0; i < 6; ++i) {
    const BufferId a = build.alloc({.size = 512_B}), b = build.alloc({.size = 1024_B});
    build.alloc({.size = 256_B, .line = line});
    build.free(a);
    build.free(b);
  }
  const Growth found = find_growth(build.finish());
  CHECK_FALSE(found.by_iteration);
  REQUIRE(found.parts() == 6);
  REQUIRE(found.rows.size() == 1);
  CHECK(found.rows[0].cause == "train.py:7");
  CHECK(found.rows[0].bytes == 1024_B);
}

TEST_CASE("fewer than three steps have no growth") {
  Steps two;
  CHECK(two.run(2, [](Steps& steps, int) { steps.make(8_B, "train.py:9"); }).parts() == 0);
  TraceBuilder empty;
  CHECK(find_growth(empty.finish()).parts() == 0);
}

}  // namespace tidepool::growth_test
