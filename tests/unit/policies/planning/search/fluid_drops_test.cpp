// Drops and copies by the fluid linear program, in closed form.
#include "policies/planning/search/fluid_drops.hpp"

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "policies/planning/search/fluid_shares.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

namespace tidepool::fluid_drops_test {

namespace {

constexpr Bytes kSize{100'000'000};  // takes 100 ms on each link
constexpr Nanos kWork{100'000'000};  // 100 ms
constexpr double kMilli = 1e6;       // ns
const Machine kMachine = tests::byte_per_nano();

/// Op 0 makes x, ops 1 and 2 use y, op 3 reads x. Op 0 takes 100 ms or `first`.
Trace two_that_do_not_fit(Nanos first = kWork) {
  TraceBuilder build;
  const BufferId x = build.alloc({.size = kSize});
  build.run({.duration = first}, {{x, Access::kWrite}});
  const BufferId y = build.alloc({.size = kSize});
  build.run({.duration = kWork}, {{y, Access::kWrite}});
  build.run({.duration = kWork}, {{y, Access::kRead}});
  build.free(y);
  build.run({.duration = kWork}, {{x, Access::kRead}});
  build.free(x);
  return build.finish();
}

/// A planning of a step in which only one of x and y fits.
struct Planned {
  explicit Planned(Trace step) : trace{std::move(step)} {}
  Trace trace;
  StepCircle circle = step_circle(trace);
  std::vector<Gap> gaps = find_gaps(trace, 1_B);
  Reruns reruns{trace, gaps};
  Planning planning{trace, circle, gaps, reruns, kMachine, kSize};
};

std::vector<double> in_millis(const std::vector<Nanos>& times) {
  std::vector<double> millis;
  for (const Nanos time : times) millis.push_back(std::round(static_cast<double>(time.count()) / kMilli));
  return millis;
}

}  // namespace

TEST_CASE("the fluid plan beside given drops: waits for copies, or a rerun") {
  const Planned step{two_that_do_not_fit()};
  REQUIRE(step.gaps.size() == 1);
  const auto copies = fluid_copies(step.planning, {});
  REQUIRE(copies);
  CHECK(copies->time / kMilli == Approx(600).margin(0.01));
  CHECK(copies->shares[0] == Approx(1).margin(1e-6));
  CHECK(in_millis(copies->start) == std::vector<double>{0, 200, 300, 500, 600});
  // One byte less in memory would save the copy of one byte, 1 ns, on each link.
  CHECK(std::accumulate(copies->prices.begin(), copies->prices.end(), 0.0) == Approx(2).margin(1e-6));
  const auto dropped = fluid_copies(step.planning, {0});
  REQUIRE(dropped);
  CHECK(dropped->time / kMilli == Approx(500).margin(0.01));  // op 0 runs twice
  CHECK(dropped->shares[0] == 0);
  CHECK(in_millis(dropped->start) == std::vector<double>{0, 100, 200, 300, 400});  // without the rerun
}

TEST_CASE("a gap is dropped if its bytes cost more, at the prices of memory, than its rerun") {
  const auto best = [](Nanos first, int programs) {
    const Planned step{two_that_do_not_fit(first)};
    const RunSpec spec{.pool = "ideal", .policy = "none", .capacity = kSize, .machine = kMachine, .steady = true};
    Trials trials{step.trace, spec, 20, OnDemand::kCopy};
    try_fluid_drops(trials, step.planning, step.reruns.costs(), {}, programs);
    return std::pair{trials.best_plan().dropped.size(), trials.best_result().totals.makespan};
  };
  CHECK(best(kWork, 2) == std::pair{std::size_t{1}, kWork * 5});
  CHECK(best(kWork, 1) == std::pair{std::size_t{0}, kWork * 6});      // one program: without drops
  CHECK(best(kWork * 3, 2) == std::pair{std::size_t{0}, kWork * 8});  // a rerun takes more than two copies
}

TEST_CASE("in a long step short ops are merged, which hardly changes the result") {
  TraceBuilder build;
  const BufferId x = build.alloc({.size = kSize});
  build.run({.duration = kWork}, {{x, Access::kWrite}});
  const BufferId y = build.alloc({.size = kSize});
  build.run({.duration = kWork}, {{y, Access::kWrite}});
  for (int i = 0; i < 1'000; ++i) build.run({.duration = kWork / 1'000}, {{y, Access::kRead}});
  build.free(y);
  build.run({.duration = kWork}, {{x, Access::kRead}});
  build.free(x);
  const Planned step{build.finish()};
  const auto copies = fluid_copies(step.planning, {});
  REQUIRE(copies);
  CHECK(copies->time / kMilli == Approx(600).margin(0.01));
  CHECK(copies->start.size() == step.trace.ops().size() + 1);
  CHECK(in_millis({copies->start[1], copies->start[1'002]}) == std::vector<double>{200, 500});
}

TEST_CASE("no fluid plan exists if nothing can be absent and the step does not fit") {
  TraceBuilder build;
  const BufferId x = build.alloc({.size = kSize});
  build.run({.duration = kWork}, {{x, Access::kWrite}});
  build.free(x);
  Planned step{build.finish()};
  REQUIRE(step.gaps.empty());
  const Planning planning{step.trace, step.circle, step.gaps, step.reruns, kMachine, kSize - 1_B};
  CHECK(fluid_shares(planning).empty());
  CHECK_FALSE(fluid_copies(planning, {}));
}

}  // namespace tidepool::fluid_drops_test
