// Content that no op reads any more, but that the program has not freed yet.
#include "policies/planning/gaps/dead_content.hpp"

#include "policies/planning/gaps/step_circle.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

namespace tidepool::dead_content_test {

namespace {

/// op0 makes g (8 MiB) | op1 updates p (8 MiB) from g | op2 writes w (8 MiB) | op3 updates w and p | then g
/// and w are freed.
Trace late_free() {
  TraceBuilder build;
  const BufferId p = build.existing({.size = 8_MiB});
  const BufferId g = build.alloc({.size = 8_MiB});
  build.run({.duration = 1_ms}, {{p, Access::kRead}, {g, Access::kWrite}});
  build.run({.duration = 1_ms}, {{p, Access::kReadWrite}, {g, Access::kRead}});
  const BufferId w = build.alloc({.size = 8_MiB});
  build.run({.duration = 1_ms}, {{w, Access::kWrite}});
  build.run({.duration = 1_ms}, {{w, Access::kReadWrite}, {p, Access::kReadWrite}});
  build.free(g);
  build.free(w);
  return build.finish();
}

}  // namespace

TEST_CASE("content is dead from its last use until it is freed, if another op runs in between") {
  const Trace trace = late_free();
  const std::vector<DeadContent> dead = find_dead_content(trace);
  REQUIRE(dead.size() == 1);  // g; the parameter outlives the step, and w is freed directly after op 3, its last use
  CHECK(dead[0].version == trace.made(OpId{0})[0]);
  CHECK(dead[0].last_use == 1);
  CHECK(drops_of(dead) == std::vector<Action>{{Verb::kDrop, OpId{2}, dead[0].version.value(), {}, {}}});
}

TEST_CASE("dead content that is dropped is no longer live") {
  const Trace trace = late_free();
  const std::vector<DeadContent> dead = find_dead_content(trace);
  CHECK(step_circle(trace).load == std::vector<Bytes>{16_MiB, 16_MiB, 24_MiB, 24_MiB});
  CHECK(step_circle(trace, SlotBegins::kBeforeFrees, dead).load == std::vector<Bytes>{16_MiB, 16_MiB, 16_MiB, 16_MiB});
  CHECK(step_circle(trace, SlotBegins::kAfterFrees, dead).load == std::vector<Bytes>{16_MiB, 16_MiB, 16_MiB, 16_MiB});
}

TEST_CASE("tide copies nothing if dropping dead content makes enough room") {
  const Trace trace = late_free();
  const RunSpec spec{.pool = "best-fit", .policy = "tide", .capacity = 16_MiB, .machine = find_machine("a100-pcie4")};
  const Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(result.totals.makespan == result.baseline);
  CHECK(result.totals.swap_out == 0_B);
  CHECK(replay(trace, spec, result.realised) == result.totals);
}

}  // namespace tidepool::dead_content_test
