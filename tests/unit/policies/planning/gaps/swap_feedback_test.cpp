// Planning again with the waits of the last plan, in closed form.
#include <algorithm>

#include "policies/planning/gaps/peak_selection.hpp"
#include "policies/planning/gaps/priced_selection.hpp"
#include "policies/planning/gaps/realised_step.hpp"
#include "policies/planning/gaps/schedule.hpp"
#include "policies/planning/gaps/trials.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/random_trace.hpp"
#include "traces/builder.hpp"

namespace tidepool::swap_feedback_test {

namespace {

const Machine kMachine = tests::byte_per_nano();

/// A circle of ops of 100 ns with these loads.
StepCircle circle_of(const std::vector<std::int64_t>& loads) {
  StepCircle circle;
  for (std::size_t i = 0; i <= loads.size(); ++i) circle.start.emplace_back(100 * static_cast<std::int64_t>(i));
  for (const std::int64_t load : loads) circle.load.emplace_back(load);
  return circle;
}

Gap gap(std::uint32_t release, std::uint32_t due, std::int64_t size, std::uint32_t version) {
  return {VersionId{version}, VersionId{version}, Bytes{size}, release, due, false};
}

/// A realised step in which no op waited for a copy.
RealisedStep at_leisure(const StepCircle& circle) {
  return {circle, std::vector<bool>(circle.size()), std::vector<bool>(circle.size())};
}

}  // namespace

TEST_CASE("a copy that an op waited for is exposed, and op starts leave out waits for swap-ins") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = 100_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.duration = 100_ns}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 100_ns}, {{a, Access::kRead}});
  build.free(a);
  const Trace trace = build.finish();
  const RunSpec spec{.pool = "ideal", .policy = "none", .capacity = 150_B, .machine = kMachine};
  // Only one of the two fits. In ns: a is swapped out from 100 to 200, b is written until 300, a is swapped in until
  // 400.
  const Result run = judge(trace, spec, follow_draft({}, OnDemand::kCopy), true);
  REQUIRE(run.outcome == Outcome::kOk);
  REQUIRE(run.totals.makespan == 500_ns);
  const RealisedStep step = realised_step(trace, spec, step_circle(trace), run.realised);
  CHECK(step.circle.start == std::vector<Nanos>{0_ns, 200_ns, 300_ns, 400_ns});
  CHECK(step.exposed_out == std::vector<bool>{false, true, false});
  CHECK(step.exposed_in == std::vector<bool>{false, false, true});
  CHECK(clock_of_plan(trace, spec, run.realised) == std::vector<Nanos>{0_ns, 200_ns, 400_ns, 500_ns});
  // If a is dropped instead, it is recomputed from 200 to 300 ns. The clock leaves this out.
  const Result reran = judge(trace, spec, follow_draft({}, OnDemand::kDrop), true);
  REQUIRE(reran.totals.makespan == 400_ns);
  CHECK(clock_of_plan(trace, spec, reran.realised) == std::vector<Nanos>{0_ns, 100_ns, 200_ns, 300_ns});
}

TEST_CASE("copies that ops wait for have a price, and other copies and those of the previous iteration have none") {
  RealisedStep step = at_leisure(circle_of({10, 10, 10, 10}));
  step.exposed_out[2] = step.exposed_in[3] = true;
  Gap exposed = gap(1, 3, 5, 0), unchanged = exposed, renewed = gap(1, 4, 5, 1);
  exposed.made = 0;
  unchanged.made = Gap::kUnchanged;
  renewed.renewed = VersionId{2};
  renewed.renewed_by = 2;
  const std::vector<double> prices =
      copy_prices(step, {exposed, unchanged, renewed}, kMachine, AmongLike::kFirstReleased);
  const double released = 1e-3 * 0.5;  // in the middle of the step
  CHECK(prices == std::vector<double>{2 + released, 1 + released, 0 + released});
  // Of two gaps of the same price, the one with the earlier release comes first; with kLongest, the longer one.
  const std::vector<Gap> two{gap(0, 2, 5, 0), gap(1, 4, 5, 1)};
  const std::vector<double> by_release = copy_prices(at_leisure(step.circle), two, kMachine, AmongLike::kFirstReleased);
  CHECK(by_release[0] < by_release[1]);
  const std::vector<double> by_length = copy_prices(at_leisure(step.circle), two, kMachine, AmongLike::kLongest);
  CHECK(by_length[1] < by_length[0]);
}

TEST_CASE("a selection for peaks lowers the highest slot by the cheapest gap that contains it") {
  const StepCircle circle = circle_of({10, 40, 60, 40, 10});
  // Only slot 2 is above 40 B. The gap of price 0 contains only slot 3; the cheaper one of the other two is enough.
  const std::vector<Gap> gaps{gap(2, 4, 20, 0), gap(0, 4, 20, 1), gap(1, 3, 20, 2)};
  const Selection one = select_for_peaks(circle, gaps, {0, 1, 0.5}, SlotLimits(5, 40_B));
  CHECK(one.gaps == std::vector<std::uint32_t>{2});
  CHECK(one.peak == 40_B);
  CHECK(one.fits);
  // With a limit of 20 B, slots 1 to 3 are equally above it after that pick. The first of them is lowered next.
  const Selection all = select_for_peaks(circle, gaps, {0, 1, 0.5}, SlotLimits(5, 20_B));
  CHECK(all.gaps == std::vector<std::uint32_t>{2, 1});
  CHECK(all.peak == 20_B);
  CHECK(all.fits);
  CHECK_FALSE(select_for_peaks(circle, gaps, {0, 1, 0.5}, SlotLimits(5, 5_B)).fits);
}

TEST_CASE("a selection for peaks omits a gap that ops wait for if a smaller selection is enough") {
  const StepCircle circle = circle_of({10, 40, 60, 40, 10});
  const auto picked = [&](const std::vector<Gap>& gaps, const std::vector<double>& prices) {
    const Selection selection = select_for_peaks(circle, gaps, prices, SlotLimits(5, 40_B));
    CHECK(selection.fits);
    CHECK(selection.peak <= 40_B);
    return selection.gaps;
  };
  using Gaps = std::vector<std::uint32_t>;
  // The gap of 20 B is enough. It is taken although its price per byte is higher, if all of it costs less than the gap
  // of 30 B: at 1.4 times that gap's price, but not at 1.5 times.
  const std::vector<Gap> gaps{gap(1, 3, 30, 0), gap(1, 3, 20, 1)};
  CHECK(picked(gaps, {1, 1.4}) == Gaps{1});
  CHECK(picked(gaps, {1, 1.5}) == Gaps{0});
  // After the second pick, the first one is not needed any more.
  const std::vector<Gap> both{gap(1, 3, 10, 0), gap(1, 3, 20, 1)};
  CHECK(picked(both, {1, 1.1}) == Gaps{1});
  // A gap that no op waits for is not omitted.
  CHECK(picked(both, {0.001, 1.1}) == Gaps{0, 1});
}

TEST_CASE("content from before the step begins on the host if its swap-in ends in time") {
  const RealisedStep leisure = at_leisure(circle_of({10, 10, 10, 10, 10, 10}));
  RealisedStep step = leisure;
  step.exposed_out[2] = step.exposed_out[3] = true;
  // Ops 1 and 5 read version 0, ops 2 and 5 read version 1. The swap-ins take 90 and 120 ns.
  Gap soon = gap(5, 7, 90, 0), later = gap(5, 8, 120, 1);
  soon.crosses = later.crosses = true;
  soon.made = later.made = Gap::kUnchanged;
  const std::vector<Gap> gaps{soon, later, gap(1, 5, 90, 0), gap(2, 5, 120, 1)};
  // The first swap-in ends at 90 ns, before op 1 starts at 100 ns. The second ends at 210 ns, but op 2 starts at 200
  // ns.
  CHECK(with_begun_on_host(step, gaps, kMachine, {2, 3}) == std::vector<std::uint32_t>{2, 3, 0});
  const std::vector<double> prices = copy_prices(step, gaps, kMachine, AmongLike::kFirstReleased);
  CHECK(prices[2] < 1);
  CHECK(prices[3] > 1);
  // If no op waits for swap-outs, nothing begins on the host.
  CHECK(with_begun_on_host(leisure, gaps, kMachine, {2, 3}) == std::vector<std::uint32_t>{2, 3});
}

TEST_CASE("a lane that becomes free during an op takes a copy that was requested before the op") {
  // Op 0 writes all and op 4 releases them. The copies follow each other from 100 ns on, and end at 130, 170, 230 and
  // 240 ns.
  std::vector<Gap> gaps{gap(4, 7, 30, 0), gap(4, 7, 40, 1), gap(4, 7, 60, 2), gap(4, 7, 10, 3)};
  for (Gap& each : gaps) each.made = 0;
  std::vector<PlannedGap> planned{{0, 6, 0}, {1, 6, 0}, {2, 6, 0}, {3, 6, 0}};
  copy_when_free(circle_of({200, 200, 200, 200, 200, 200, 200, 200}), gaps, planned, kMachine);
  CHECK(planned == std::vector<PlannedGap>{{0, 6, 1}, {1, 6, 1}, {2, 6, 1}, {3, 6, 2}});
}

TEST_CASE("versions released in this iteration are copied before those released in the next one") {
  // Op 2 writes both. Op 5 releases one, and op 1 of the next iteration releases the other one.
  Gap now = gap(5, 7, 50, 0), next = gap(0, 2, 50, 1);
  now.made = 2;
  next.renewed = VersionId{2};
  next.renewed_by = 2;
  std::vector<PlannedGap> planned{{0, 6, 0}, {1, 1, 0}};
  copy_when_free(circle_of({200, 200, 200, 200, 200, 200, 200, 200}), {now, next}, planned, kMachine);
  CHECK(planned == std::vector<PlannedGap>{{0, 6, 3}, {1, 1, 3}});
  const std::vector<Bytes> leaving = bytes_leaving(circle_of({200, 200, 200, 200, 200, 200, 200, 200}), {now, next},
                                                   {0, 1}, kMachine, CopyOut::kWhenFree);
  CHECK(leaving == std::vector<Bytes>(8));  // both copies end long before the releases
}

TEST_CASE("a realised step is in program order, even if ops of several streams wait at the same time") {
  int waiting = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO(seed);
    const Trace trace = tests::random_trace(seed, 60);
    if (trace.data().streams.size() == 1) continue;
    RunSpec spec{.pool = "ideal", .policy = "lru-swap", .machine = tests::uneven()};
    spec.capacity = Bytes{trace.ideal_peak().count() * 85 / 100};
    spec.overhead_limit = {};
    const Result result = simulate(trace, spec, true);
    if (result.outcome != Outcome::kOk || result.totals.stall.h2d == 0_ns) continue;
    ++waiting;
    const std::vector<Nanos> start = realised_step(trace, spec, step_circle(trace), result.realised).circle.start;
    CHECK(std::is_sorted(start.begin(), start.end()));
    CHECK(start.front() >= 0_ns);
  }
  CHECK(waiting >= 4);
}

}  // namespace tidepool::swap_feedback_test
