// Quantities of hybrid planners in closed form: lineages, exposed copies, early swap-ins. Small runs of PoocH and tide.
#include <algorithm>
#include <utility>

#include "policies/planning/gaps/feature_maps.hpp"
#include "policies/planning/gaps/schedule_early.hpp"
#include "policies/planning/remat/lineage.hpp"
#include "simulator/engine/exposed_copies.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/machines.hpp"
#include "tests/plan_writer.hpp"
#include "tests/scripted_policy.hpp"
#include "traces/builder.hpp"

namespace tidepool::hybrid_planning_test {

namespace {

const Machine kMachine = tests::byte_per_nano();

Gap gap(std::uint32_t release, std::uint32_t due, std::int64_t size) {
  return {VersionId{release}, VersionId{release}, Bytes{size}, release, due, false};
}

Action act(Verb verb, std::size_t before, VersionId subject) { return {verb, OpId{before}, subject.value(), {}, {}}; }

std::size_t count(const Plan& plan, Verb verb) {
  return static_cast<std::size_t>(std::count_if(plan.actions.begin(), plan.actions.end(),
                                                [&](const Action& action) { return action.verb == verb; }));
}

}  // namespace

TEST_CASE("a lineage has the freed or dropped versions between a version and resident ones") {
  // x -1 ns-> a -2 ns-> b -4 ns-> c -8 ns-> d; b is freed before d is made from c; ops 4 and 5 do nothing.
  TraceBuilder build;
  const BufferId x = build.existing({.size = 1_B});
  std::vector<BufferId> made;
  for (int i = 0; i < 4; ++i) {
    made.push_back(build.alloc({.size = 1_B}));
    build.run({.duration = Nanos{1 << i}},
              {{i == 0 ? x : made[made.size() - 2], Access::kRead}, {made.back(), Access::kWrite}});
    if (i == 2) build.free(made[1]);
  }
  build.run({.duration = 100_ns}, {});
  build.run({.duration = 100_ns}, {});
  const Trace trace = build.finish();
  const auto version = [&](std::size_t op) { return trace.made(OpId{op})[0]; };
  Lineage lineage{trace};
  CHECK(lineage.time(version(0), 4) == 1_ns);
  CHECK(lineage.time(version(3), 4) == 8_ns);  // from c
  CHECK(lineage.time(version(2), 4) == 6_ns);  // b is freed, so it is recomputed from a
  CHECK(lineage.time(version(2), 2) == 4_ns);  // b is still resident
  lineage.drop(version(0), 0, 5);
  CHECK(lineage.time(version(2), 4) == 7_ns);
  CHECK(lineage.time(version(2), 5) == 6_ns);  // at op 5, a is resident again
  lineage.keep(version(0));
  CHECK(lineage.time(version(2), 4) == 6_ns);
}

TEST_CASE("a version has no lineage if an absent input is from a source or from before the step") {
  TraceBuilder build;
  const BufferId before = build.existing({.size = 1_B}), loaded = build.alloc({.size = 1_B});
  build.run({.kind = OpKind::kSource, .duration = 1_ns}, {{loaded, Access::kWrite}});
  const BufferId a = build.alloc({.size = 1_B}), b = build.alloc({.size = 1_B});
  build.run({.duration = 2_ns}, {{before, Access::kRead}, {a, Access::kWrite}});
  build.run({.duration = 2_ns}, {{loaded, Access::kRead}, {b, Access::kWrite}});
  build.free(before);
  build.run({.duration = 2_ns}, {});
  const Trace trace = build.finish();
  Lineage lineage{trace};
  CHECK_FALSE(lineage.time(trace.made(OpId{1})[0], 3).has_value());
  CHECK(lineage.time(trace.made(OpId{1})[0], 2) == 2_ns);
  CHECK(lineage.time(trace.made(OpId{2})[0], 3) == 2_ns);
  lineage.drop(trace.made(OpId{0})[0], 2, 4);
  CHECK_FALSE(lineage.time(trace.made(OpId{2})[0], 3).has_value());
}

TEST_CASE("an early swap-in begins as soon as its memory is free from then on") {
  const std::vector<Gap> gaps{gap(0, 6, 50), gap(1, 5, 40)};
  // The gap that is due first is planned first. Its 40 B fit from slot 2 on, except in slot 4, which has 61 of 100 B.
  const std::vector<Bytes> load{100_B, 60_B, 30_B, 30_B, 61_B, 10_B, 100_B};
  CHECK(schedule_early(gaps, {0, 1}, load, 100_B) == std::vector<PlannedGap>{{1, 5, 0}, {0, 5, 0}});
  std::vector<Bytes> lower = load;
  lower[4] = 60_B;
  CHECK(schedule_early(gaps, {0, 1}, lower, 100_B) == std::vector<PlannedGap>{{1, 2, 0}, {0, 5, 0}});
  CHECK(schedule_early(gaps, {0, 1}, lower, 100_B, 4) == std::vector<PlannedGap>{{1, 4, 0}, {0, 5, 0}});
  CHECK(schedule_early(gaps, {0}, lower, 110_B) == std::vector<PlannedGap>{{0, 1, 0}});
}

TEST_CASE("a wait exposes the copy that it waits for, and if it lasts longer than that copy, the copies before, too") {
  // a and c (100 B each) are swapped out one after the other from 10 ns on. b (100 B) takes the place of a at 110 ns
  // instead of 10 ns. Op 3 needs a and c, so it waits for 200 ns.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B}), c = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}, {c, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.duration = 1000_ns}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 10_ns}, {});
  build.run({.duration = 10_ns}, {{a, Access::kRead}, {c, Access::kRead}});
  build.free(a);
  build.free(c);
  const Trace trace = build.finish();
  const VersionId va = trace.made(OpId{0})[0], vc = trace.made(OpId{0})[1];
  tests::script() = {act(Verb::kSwapOut, 1, va), act(Verb::kSwapOut, 1, vc), act(Verb::kSwapIn, 3, va),
                     act(Verb::kSwapIn, 3, vc)};
  const RunSpec spec{.pool = "ideal", .policy = "scripted", .capacity = 200_B, .machine = kMachine};
  const Result result = simulate(trace, spec, true);
  tests::script().clear();
  REQUIRE(result.outcome == Outcome::kOk);
  const ExposedCopies exposed = exposed_copies(trace, spec, result.realised);
  CHECK(exposed.out[va.index()] == 100_ns);
  CHECK(exposed.out[vc.index()] == 0_ns);
  CHECK(exposed.in[va.index()] == 100_ns);
  CHECK(exposed.in[vc.index()] == 100_ns);
  CHECK(exposed.of(va) == 200_ns);
  CHECK(result.totals.stall.compute == 300_ns);
}

TEST_CASE("a wait for a copy that the iteration before issued exposes this copy") {
  // After the last op, c and a (100 B each) are swapped out one after the other. In the second iteration, x is swapped
  // out before op 0, which takes the places of a and c, so it waits 200 ns for their copies.
  TraceBuilder build;
  const BufferId x = build.existing({.size = 100_B});
  const BufferId a = build.alloc({.size = 100_B}), c = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}, {c, Access::kWrite}});
  build.run({.duration = 10_ns}, {{x}});
  const Trace trace = build.finish();
  const VersionId va = trace.made(OpId{0})[0], vc = trace.made(OpId{0})[1], vx = trace.first_version(x);
  tests::PlanWriter plan{trace};
  plan.alloc(vx, 0_B).alloc(va, 100_B).alloc(vc, 200_B).run_to(OpId{1});
  plan.swap_out(vc).swap_out(va).drop(vc).drop(va).next(1);
  plan.swap_out(vx).alloc(va, 100_B).alloc(vc, 200_B).run_to(OpId{1});
  const RunSpec spec{.pool = "ideal", .capacity = 300_B, .machine = kMachine};
  const ExposedCopies exposed = exposed_copies(trace, spec, plan.plan());
  CHECK(exposed.out[va.index()] == 100_ns);
  CHECK(exposed.out[vc.index()] == 100_ns);
  CHECK(exposed.out[vx.index()] == 0_ns);
}

TEST_CASE("an op's wait for an op of another stream exposes no copy") {
  // a (100 B) is back at 210 ns. Op 3 reads a and the output of op 1, which ends at 1000 ns on another stream.
  TraceBuilder build;
  const StreamId other = build.stream("other");
  const BufferId a = build.alloc({.size = 100_B}), x = build.alloc({.size = 1_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  build.run({.stream = other, .duration = 1000_ns}, {{x, Access::kWrite}});
  build.run({.duration = 10_ns}, {});
  build.run({.duration = 10_ns}, {{a, Access::kRead}, {x, Access::kRead}});
  const Trace trace = build.finish();
  const VersionId va = trace.made(OpId{0})[0];
  tests::script() = {act(Verb::kSwapOut, 1, va), act(Verb::kSwapIn, 2, va)};
  const RunSpec spec{.pool = "ideal", .policy = "scripted", .capacity = 200_B, .machine = kMachine};
  const Result result = simulate(trace, spec, true);
  tests::script().clear();
  REQUIRE(result.outcome == Outcome::kOk);
  REQUIRE(count(result.realised, Verb::kSwapIn) == 1);
  CHECK(result.totals.makespan == 1010_ns);
  CHECK(exposed_copies(trace, spec, result.realised).of(va) == 0_ns);
}

TEST_CASE("feature maps are idle between forward and backward, and parameters and gaps across steps do not count") {
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 1_B}), input = build.existing({.size = 2_B});
  const BufferId a = build.alloc({.size = 3_B}), early = build.alloc({.size = 4_B});
  build.run({.phase = Phase::kForward, .duration = 1_ns},
            {{weight, Access::kRead}, {input, Access::kRead}, {a, Access::kWrite}, {early, Access::kWrite}});
  build.run({.phase = Phase::kForward, .duration = 1_ns}, {});
  build.run({.phase = Phase::kForward, .duration = 1_ns}, {{early, Access::kRead}});
  build.free(early);
  build.run({.phase = Phase::kBackward, .duration = 1_ns}, {{a, Access::kRead}});
  build.run({.phase = Phase::kBackward, .duration = 1_ns}, {{weight, Access::kRead}, {input, Access::kRead}});
  build.free(a);
  build.free(input);
  const Trace trace = build.finish();
  const std::vector<Gap> gaps = find_gaps(trace, 1_B);
  std::vector<Bytes> sizes;
  for (const std::uint32_t i : feature_maps(trace, gaps)) sizes.push_back(gaps[i].size);
  CHECK(sizes == std::vector<Bytes>{3_B, 2_B});
  CHECK(feature_maps(trace, find_gaps(trace, 1_B, Assumptions::find("simrd"))).size() == 1);  // the input stays
}

namespace {

/// Forward: op 0 makes a (100 B, 10 ns) and op 1 makes b (100 B, 50 ns), both from x (10 B); op 2 makes and frees p
/// (100 B, 10 ns). Backward: op 3 reads b, op 4 reads a, 10 ns each.
Trace two_maps() {
  TraceBuilder build;
  const BufferId x = build.existing({.size = 10_B});
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.phase = Phase::kForward, .duration = 10_ns}, {{x, Access::kRead}, {a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.phase = Phase::kForward, .duration = 50_ns}, {{x, Access::kRead}, {b, Access::kWrite}});
  const BufferId p = build.alloc({.size = 100_B});
  build.run({.phase = Phase::kForward, .duration = 10_ns}, {{p, Access::kWrite}});
  build.free(p);
  build.run({.phase = Phase::kBackward, .duration = 10_ns}, {{b, Access::kRead}});
  build.free(b);
  build.run({.phase = Phase::kBackward, .duration = 10_ns}, {{a, Access::kRead}});
  build.free(a);
  return build.finish();
}

Result run_pooch(const std::string& options, Bytes capacity) {
  const RunSpec spec{
      .pool = "ideal", .policy = "pooch(least=1B" + options + ")", .capacity = capacity, .machine = kMachine};
  const Trace trace = two_maps();
  Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(replay(trace, spec, result.realised) == result.totals);
  return result;
}

}  // namespace

TEST_CASE("PoocH keeps versions that fit and recomputes those whose copies ops would wait for") {
  // One of a and b must be absent while p is live. If both are swapped, ops wait for a: op 2 waits 50 ns until a has
  // left, and op 4 waits 180 ns until a is back, since a's swap-in begins only when b has left. So a is kept. Then ops
  // would wait for b, so b is recomputed in 50 ns.
  const Result profiled = run_pooch(",effort=1", 210_B);
  CHECK(profiled.totals.swap_out == 200_B);
  CHECK(profiled.totals.recompute == 0_ns);
  const Result kept = run_pooch(",effort=2,rooms=1", 210_B);
  CHECK(kept.totals.swap_out == 100_B);
  CHECK(kept.totals.makespan < profiled.totals.makespan);
  const Result result = run_pooch("", 210_B);
  CHECK(result.totals.swap_out == 0_B);
  CHECK(result.totals.recompute == 50_ns);
  CHECK(result.totals.makespan == result.baseline + 50_ns);
  CHECK(count(result.realised, Verb::kDrop) == 1);
  // If both fit, no version is swapped or recomputed.
  CHECK(run_pooch("", 310_B).totals.makespan == result.baseline);
}

TEST_CASE("PoocH first recomputes the versions with the longest wait per recomputation time") {
  // Neither a nor b fits beside p. Two trials that keep one fail. The third recomputes a, in 10 ns instead of b's 50
  // ns.
  const Result first = run_pooch(",rooms=1,exhaustive=0,effort=4", 110_B);
  CHECK(first.totals.recompute == 10_ns);
  CHECK(first.totals.swap_out == 100_B);
  const Result both = run_pooch("", 110_B);
  CHECK(both.totals.recompute == 60_ns);
  CHECK(both.totals.swap_out == 0_B);
  CHECK(both.totals.makespan == both.baseline + 60_ns);
}

TEST_CASE("tide plans for a link of less than a megabyte per second") {
  Machine slow = kMachine;
  for (Link* const link : {&slow.h2d, &slow.d2h}) link->rate = BytesPerSecond{500'000}, link->duplex_ppm = 700'000;
  const Trace trace = tests::chain_trace(12);
  RunSpec spec{.policy = "tide(least=1B,effort=40)", .capacity = trace.ideal_peak() / 10 * 7, .machine = slow};
  const Result result = simulate(trace, spec, true);
  CHECK(result.outcome == Outcome::kOk);
  CHECK(replay(trace, spec, result.realised) == result.totals);
  spec.policy = "dtr-eq";
  CHECK(result.totals.makespan <= simulate(trace, spec).totals.makespan);
}

}  // namespace tidepool::hybrid_planning_test
