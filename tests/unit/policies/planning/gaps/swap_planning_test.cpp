// Gaps, their selection and their schedules, in closed form.
#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/gap_draft.hpp"
#include "policies/planning/gaps/schedule.hpp"
#include "policies/planning/gaps/selection.hpp"
#include "policies/planning/gaps/step_circle.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/base/error.hpp"
#include "traces/builder.hpp"

namespace tidepool::swap_planning_test {

namespace {

/// 1 GB/s each way without latency: 1 B takes 1 ns.
const Machine kMachine = tests::byte_per_nano();

/// Ops of 100 ns each: 0 writes a (50 B) | 1 writes b (30 B) and c (7 B) | 2 reads weight (20 B) and d (7 B), which is
/// then freed | 3 reads b | 4 changes weight and reads a | 5 uses nothing. d exists before the step; c outlives the
/// step.
Trace five_ops() {
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 20_B});
  const BufferId d = build.existing({.size = 7_B});
  const BufferId a = build.alloc({.size = 50_B});
  build.run({.duration = 100_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 30_B});
  const BufferId c = build.alloc({.size = 7_B});
  build.run({.duration = 100_ns}, {{b, Access::kWrite}, {c, Access::kWrite}});
  build.run({.duration = 100_ns}, {{weight, Access::kRead}, {d, Access::kRead}});
  build.free(d);
  build.run({.duration = 100_ns}, {{b, Access::kRead}});
  build.free(b);
  build.run({.duration = 100_ns}, {{weight, Access::kReadWrite}, {a, Access::kRead}});
  build.free(a);
  build.run({.duration = 100_ns}, {});
  return build.finish();
}

/// A circle of ops of 100 ns with these loads.
StepCircle circle_of(const std::vector<std::int64_t>& loads) {
  StepCircle circle;
  for (std::size_t i = 0; i <= loads.size(); ++i) circle.start.emplace_back(100 * static_cast<std::int64_t>(i));
  for (const std::int64_t load : loads) circle.load.emplace_back(load);
  return circle;
}

Gap gap(std::uint32_t release, std::uint32_t due, std::int64_t size) {
  return {VersionId{release}, VersionId{release}, Bytes{size}, release, due, false};
}

Action act(Verb verb, std::size_t before, std::uint32_t subject) { return {verb, OpId{before}, subject, {}, {}}; }

std::vector<std::uint32_t> picked(GapScore score, const StepCircle& circle, const std::vector<Gap>& gaps,
                                  std::int64_t limit) {
  return select_gaps(circle, gaps, kMachine, score, SlotLimits(circle.size(), Bytes{limit})).gaps;
}

}  // namespace

TEST_CASE("gaps are intervals between two uses, also from one iteration to the next") {
  const Trace trace = five_ops();
  const std::vector<Gap> gaps = find_gaps(trace, 1_B);
  const auto made = [&](std::size_t op, std::size_t index) { return trace.made(OpId{op})[index]; };
  const VersionId a = made(0, 0), b = made(1, 0), c = made(1, 1), changed = made(4, 0);
  const VersionId weight = trace.first_version(BufferId{0}), d = trace.first_version(BufferId{1});
  CHECK(gaps == std::vector<Gap>{{changed, weight, 20_B, 4, 6 + 2, true, 4, {}, 0},
                                 {c, d, 7_B, 1, 6 + 2, true, 1, {}, 0},  // d is c of the previous iteration
                                 {b, b, 30_B, 1, 3, false, 1, {}, 0},
                                 {weight, weight, 20_B, 2, 4, false, Gap::kBefore, changed, 4},
                                 {a, a, 50_B, 0, 4, false, 0, {}, 0}});
  CHECK(find_gaps(trace, 31_B).size() == 1);
}

TEST_CASE("a step that is run once copies nothing for the next one, and finds nothing on the host") {
  // The weight that op 4 changes, and a constant that ops 0 and 4 read.
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 20_B}), constant = build.existing({.size = 10_B});
  build.run({.duration = 100_ns}, {{weight, Access::kRead}, {constant, Access::kRead}});
  for (int i = 0; i < 3; ++i) build.run({.duration = 100_ns}, {});
  build.run({.duration = 100_ns}, {{weight, Access::kReadWrite}, {constant, Access::kRead}});
  const Trace trace = build.finish();
  const auto between_reads = [](const std::vector<Gap>& gaps) {
    std::vector<Gap> between = gaps;
    std::erase_if(between, [](const Gap& gap) { return gap.crosses; });
    return between;
  };
  const std::vector<Gap> repeated = between_reads(find_gaps(trace, 1_B));
  REQUIRE(repeated.size() == 2);
  CHECK(repeated[0].renewed.valid());
  CHECK(repeated[1].made == Gap::kUnchanged);
  RunSpec once;
  once.capacity = 0_B;
  for (const Gap& gap : between_reads(find_gaps_of_run(trace, 1_B, step_circle(trace), once))) {
    CHECK_FALSE(gap.renewed.valid());
    CHECK(gap.made == Gap::kBefore);
  }
}

TEST_CASE("the circle of a step has the bytes that are live while each op runs") {
  const StepCircle circle = step_circle(five_ops());
  CHECK(circle.period() == 600_ns);
  CHECK(circle.at(8) == 800_ns);
  CHECK(circle.load == std::vector<Bytes>{77_B, 114_B, 114_B, 114_B, 107_B, 77_B});
  CHECK(circle.peak() == 114_B);
  const StepCircle after_frees = step_circle(five_ops(), SlotBegins::kAfterFrees);
  CHECK(after_frees.load == std::vector<Bytes>{77_B, 114_B, 114_B, 107_B, 77_B, 27_B});
}

TEST_CASE("scores rank gaps by the definitions of their papers") {
  const StepCircle circle = circle_of({90, 90, 100, 100, 90, 10, 10, 10, 10, 10});
  // Releases are 100 ns after the starts of their ops. Spare times in ns: 300 - 20, 100 - 120, 300 - 2.
  const std::vector<Gap> gaps{gap(0, 4, 10), gap(1, 3, 60), gap(4, 8, 1)};
  const SlotLimits limits(circle.size(), 95_B);
  CHECK(gap_scores(circle, gaps, kMachine, GapScore::kDoa, limits) == std::vector<double>{280, -20, 298});
  CHECK(gap_scores(circle, gaps, kMachine, GapScore::kAoa, limits) == std::vector<double>{2800, -20.0 / 60, 298});
  CHECK(gap_scores(circle, gaps, kMachine, GapScore::kWdoa, limits) == std::vector<double>{29000, 10000, 3000});
  CHECK(gap_scores(circle, gaps, kMachine, GapScore::kExcess, limits) == std::vector<double>{1000, 500, 0});
  // During the third gap, the load is within the limit, so this gap is never taken. The first one frees 10 B, which is
  // enough.
  CHECK(picked(GapScore::kDoa, circle, gaps, 95) == std::vector<std::uint32_t>{0});
  CHECK(picked(GapScore::kDoa, circle, gaps, 90) == std::vector<std::uint32_t>{0});
  CHECK(picked(GapScore::kDoa, circle, gaps, 89) == std::vector<std::uint32_t>{0, 1});
  CHECK_THROWS_AS(find_gap_score("dao"), InputError);
}

TEST_CASE("a submodular score counts only the load that earlier picks have left") {
  // Areas in B ns: 20000 for each of the first two gaps, 19500 for the last. After one of the first two is picked, the
  // other one's area is 2 * 50 * 100.
  const StepCircle circle = circle_of({0, 100, 100, 97, 98, 0});
  const std::vector<Gap> gaps{gap(0, 3, 50), gap(0, 3, 49), gap(2, 5, 60)};
  CHECK(picked(GapScore::kWdoa, circle, gaps, 45) == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(picked(GapScore::kSwdoa, circle, gaps, 45) == std::vector<std::uint32_t>{0, 2, 1});
}

TEST_CASE("a swap-in is issued as late as possible, and earlier only as far as there is memory") {
  // 150 B take 150 ns. They are due at op 6, at 600 ns, so the swap-in must begin at 450 ns: it is issued before op 4.
  const std::vector<Gap> gaps{gap(0, 6, 150)};
  const StepCircle circle = circle_of({200, 200, 200, 200, 200, 200, 200, 200});
  CHECK(schedule_late(circle, gaps, {0}, kMachine, 200_B) == std::vector<PlannedGap>{{0, 4, 0}});
  // In slot 4 there is no memory for it, so it is issued before op 5.
  const StepCircle full = circle_of({200, 200, 200, 200, 201, 200, 200, 200});
  CHECK(schedule_late(full, gaps, {0}, kMachine, 200_B) == std::vector<PlannedGap>{{0, 5, 0}});
}

TEST_CASE("swap-ins that are due early in a step are issued in the step before, one after the other") {
  // Two swap-ins of 250 ns are due at op 1 of the next iteration, at 900 ns: they begin at 650 and 400 ns.
  const std::vector<Gap> gaps{gap(1, 9, 250), gap(2, 9, 250)};
  const StepCircle circle = circle_of({500, 500, 500, 500, 500, 500, 500, 500});
  CHECK(schedule_late(circle, gaps, {0, 1}, kMachine, 1000_B) == std::vector<PlannedGap>{{1, 6, 0}, {0, 4, 0}});
}

TEST_CASE("bytes under way are those that are being swapped out or in") {
  // 150 B leave from 100 to 250 ns, in slots 1 and 2, and are swapped in from 450 to 600 ns, in slots 4 and 5.
  const std::vector<Gap> gaps{gap(0, 6, 150)};
  const StepCircle circle = circle_of({200, 200, 200, 200, 200, 200, 200, 200});
  CHECK(bytes_under_way(circle, gaps, {0}, kMachine) ==
        std::vector<Bytes>{0_B, 150_B, 150_B, 0_B, 150_B, 150_B, 0_B, 0_B});
}

TEST_CASE("a draft swaps out after the release and in at the issue point, and a gap across steps begins on the host") {
  const std::vector<Gap> gaps{{VersionId{7}, VersionId{3}, 10_B, 5, 9, true}, gap(1, 4, 10)};
  const std::vector<Action> draft = draft_of(gaps, {{0, 8, 0}, {1, 3, 0}}, 8);
  CHECK(draft == std::vector<Action>{act(Verb::kSwapOut, 0, 3), act(Verb::kSwapIn, 0, 3), act(Verb::kSwapOut, 2, 1),
                                     act(Verb::kSwapIn, 3, 1), act(Verb::kSwapOut, 6, 7)});
}

TEST_CASE("content that one op releases and one op needs comes back in the opposite order, so that its lives nest") {
  std::vector<Gap> gaps{gap(1, 6, 10), gap(1, 6, 10), gap(1, 6, 10)};
  for (std::uint32_t i = 0; i < gaps.size(); ++i) gaps[i].out = gaps[i].in = VersionId{i};
  CHECK(draft_of(gaps, {{1, 5, 0}, {0, 5, 0}, {2, 5, 0}}, 8) ==
        std::vector<Action>{act(Verb::kSwapOut, 2, 1), act(Verb::kSwapOut, 2, 0), act(Verb::kSwapOut, 2, 2),
                            act(Verb::kSwapIn, 5, 2), act(Verb::kSwapIn, 5, 1), act(Verb::kSwapIn, 5, 0)});
}

TEST_CASE("a swap-out may begin before the release, and happens only once for all gaps of a version") {
  // Op 0 makes a version, which ops 3 and 6 read. It is absent from 400 to 600 ns, and from 700 ns on until op 2 of the
  // next iteration.
  Gap first = gap(3, 6, 150), second = gap(6, 10, 150);
  first.out = first.in = second.out = VersionId{0};
  second.in = VersionId{1};
  second.crosses = true;
  first.made = second.made = 0;
  const std::vector<Gap> gaps{first, second};
  const StepCircle circle = circle_of({200, 200, 200, 200, 200, 200, 200, 200});
  // Issued at the release, the swap-out is from 400 to 550 ns; the swap-ins are from 450 to 600 and 850 to 1000 ns.
  CHECK(bytes_under_way(circle, gaps, {0, 1}, kMachine) ==
        std::vector<Bytes>{150_B, 150_B, 0_B, 0_B, 300_B, 300_B, 0_B, 0_B});
  CHECK(draft_of(gaps, {{0, 4, 1}}, 8) == std::vector<Action>{act(Verb::kSwapOut, 1, 0), act(Verb::kSwapIn, 1, 0),
                                                              act(Verb::kSwapOut, 4, 0), act(Verb::kSwapIn, 4, 0)});
}

TEST_CASE("content that the end of a step changes may be swapped out for the next iteration") {
  // Content from before is absent from op 2 to op 4, and op 5 changes it. It is swapped out from 600 ns on, so that the
  // next op 2 needs no copy.
  Gap weight = gap(1, 4, 150);
  weight.renewed = VersionId{9};
  weight.renewed_by = 5;
  CHECK(draft_of({weight}, {{0, 2, 6}}, 8) == std::vector<Action>{act(Verb::kSwapOut, 2, 1), act(Verb::kSwapIn, 2, 1),
                                                                  act(Verb::kSwapOut, 6, 9), act(Verb::kSwapIn, 6, 9)});
}

TEST_CASE(
    "of two failed runs, the one that ran more of the program is better, and a run that ends well is better still") {
  const auto run = [](Outcome outcome, Nanos makespan, Nanos stalled, Nanos recompute, Bytes copied = {}) {
    Result result;
    result.outcome = outcome;
    result.totals.makespan = makespan;
    result.totals.stall.compute = stalled;
    result.totals.recompute = recompute;
    result.totals.swap_out = copied;
    return result;
  };
  const Result early = run(Outcome::kOutOfMemory, 50_ns, 0_ns, 0_ns);
  const Result later = run(Outcome::kTimeLimit, 500_ns, 400_ns, 49_ns);
  const Result latest = run(Outcome::kOutOfMemory, 500_ns, 400_ns, 40_ns);
  const Result ended = run(Outcome::kOk, 900_ns, 0_ns, 0_ns), sooner = run(Outcome::kOk, 899_ns, 0_ns, 0_ns, 9_B);
  const std::vector<Result> ranked{sooner, ended, run(Outcome::kOk, 900_ns, 0_ns, 0_ns, 1_B), latest, later, early};
  for (std::size_t i = 1; i < ranked.size(); ++i) {
    CHECK(better(ranked[i - 1], ranked[i]));
    CHECK_FALSE(better(ranked[i], ranked[i - 1]));
  }
}

}  // namespace tidepool::swap_planning_test
