// Removing the copies that a plan does not need, in closed form.
#include "policies/planning/search/give_up.hpp"

#include "policies/planning/gaps/step_circle.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

namespace tidepool::give_up_test {

TEST_CASE("a copy is removed if the plan fits without it, and kept if not") {
  // Op 0 makes a and c, op 1 makes b, which is then freed, op 2 reads a and c.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B}), c = build.alloc({.size = 40_B});
  build.run({.duration = 100_ns}, {{a, Access::kWrite}, {c, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.duration = 100_ns}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 100_ns}, {{a, Access::kRead}, {c, Access::kRead}});
  build.free(a);
  build.free(c);
  const Trace trace = build.finish();
  const RunSpec spec{
      .pool = "ideal", .policy = "none", .capacity = 200_B, .machine = tests::byte_per_nano(), .iterations = 1};
  const StepCircle circle = step_circle(trace, SlotBegins::kAfterFrees);
  const std::vector<Gap> gaps = find_gaps(trace, 1_B);
  REQUIRE(gaps.size() == 2);
  const std::uint32_t large = gaps[0].size == 100_B ? 0 : 1, small = 1 - large;
  const Reruns reruns{trace, gaps};
  const Planning planning{trace, circle, gaps, reruns, spec.machine, spec.capacity, false};
  Trials trials{trace, spec, 10, OnDemand::kNothing};
  // In ns: a is swapped out from 100 to 200, then op 1 runs until 300, and a is back at 400. c is swapped out as well
  // and is back at 440.
  const GapPlan both{{{large, 2, 0}, {small, 2, 0}}, {}, false};
  REQUIRE(trials.add(gaps, both).totals.makespan == 540_ns);

  SECTION("without c there is nothing but a to wait for, and without a as well b has no place") {
    give_up_copies(trials, planning, both, 10);
    CHECK(trials.best_result().totals.makespan == 500_ns);
    REQUIRE(trials.best_plan().copied.size() == 1);
    CHECK(trials.best_plan().copied[0].gap == large);
  }
  SECTION("the only copy is removed too") {
    RunSpec roomy = spec;
    roomy.capacity = 240_B;
    const Planning fitting{trace, circle, gaps, reruns, roomy.machine, roomy.capacity, false};
    Trials others{trace, roomy, 10, OnDemand::kNothing};
    const GapPlan only{{{small, 2, 0}}, {}, false};
    REQUIRE(others.add(gaps, only).totals.makespan == 340_ns);  // c leaves from 100 to 140 and is back at 240 + 100
    give_up_copies(others, fitting, only, 10);
    CHECK(others.best_result().totals.makespan == 300_ns);
    CHECK(others.best_plan().copied.empty());
  }
  SECTION("no more plans are run than asked for") {
    give_up_copies(trials, planning, both, 0);
    CHECK(trials.best_plan() == both);
  }
}

}  // namespace tidepool::give_up_test
