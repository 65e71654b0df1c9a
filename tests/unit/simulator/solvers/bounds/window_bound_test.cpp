// The bounds by windows: closed forms that bounds reach from below, and runs that reach them from above.
#include <algorithm>
#include <string>

#include "simulator/run.hpp"
#include "simulator/solvers/bounds/absences.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/bounds/window.hpp"
#include "tests/catch.hpp"
#include "tests/scripted_policy.hpp"
#include "traces/builder.hpp"

namespace tidepool::window_bound_test {

using tidepool::tests::script;

namespace {

/// 1 GB/s out and 0.5 GB/s in: a byte takes 1 ns and 2 ns.
const Machine kMachine{.name = "test",
                       .capacity = 1_GiB,
                       .h2d = {BytesPerSecond{500'000'000}, 0_ns},
                       .d2h = {BytesPerSecond{1'000'000'000}, 0_ns},
                       .source = "made up for tests"};

/// op0 writes a (1 MB) in 100 us | op1 writes b (1 MB) in `busy` | an op without a and b takes `behind`, unless that is
/// 0 | the last op reads a in 50 us.
Trace one_gap(Nanos busy, Nanos behind = {}) {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1'000'000_B});
  build.run({.duration = 100_us}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 1'000'000_B});
  build.run({.duration = busy}, {{b, Access::kWrite}});
  build.free(b);
  if (behind > Nanos{}) build.run({.duration = behind}, {});
  build.run({.duration = 50_us}, {{a, Access::kRead}});
  build.free(a);
  return build.finish();
}

/// The bound with this name; 0 if there is none.
Nanos bound_of(const Trace& trace, Bytes capacity, const std::string& name, bool remat = false, bool steady = false) {
  const BoundQuery query{
      .trace = trace, .machine = kMachine, .capacity = capacity, .swap = true, .remat = remat, .steady = steady};
  for (const Bound& bound : compute_bounds(query, BoundEffort::kAll))
    if (bound.name == name) return bound.makespan;
  return {};
}

/// Checks equality, except for rounding: the bound subtracts a millionth part and a nanosecond; twice as much may
/// be missing.
void check_tight(Nanos bound, Nanos exact) {
  CHECK(bound <= exact);
  CHECK(bound + 2_ns + Nanos{exact.count() / 500'000} >= exact);
}

}  // namespace

TEST_CASE("content that must be absent during an op leaves before it and comes back after it") {
  const Trace trace = one_gap(10_us);
  // The swap-out of 1 MB takes 1 ms after op0, the swap-in 2 ms after op1's start.
  check_tight(bound_of(trace, 1'000'000_B, "swap-window"), 160_us + 1_ms + 2_ms - 10_us);
  // The whole buffer leaves, not only half of it.
  check_tight(bound_of(trace, 1'500'000_B, "swap-window"), 160_us + 1_ms + 2_ms - 10_us);
  CHECK(bound_of(trace, 2'000'000_B, "swap-window") == Nanos{});
}

TEST_CASE("a bound names the resource behind most of the time that every plan loses") {
  /// The limiting resources of the bounds by windows, by linear programs and by whole buffers, for plans that swap. For
  /// plans that also recompute, the bounds by cuts are included.
  const auto limits = [](const Trace& trace, const Machine& machine, bool remat) {
    std::vector<Resource> limited_by;
    for (const Bound& bound :
         compute_bounds({.trace = trace, .machine = machine, .capacity = 1'000'000_B, .swap = true, .remat = remat},
                        BoundEffort::kAll)) {
      if (bound.name == "critical-path") CHECK(bound.limited_by == Resource::kCompute);
      if (bound.name.starts_with(remat ? "hybrid-" : "swap-")) limited_by.push_back(bound.limited_by);
    }
    return limited_by;
  };
  const auto all = [](Resource resource) { return std::vector(3, resource); };
  const auto all_hybrid = [](Resource resource) { return std::vector(4, resource); };
  // No op hides the swap-out or the swap-in of 1 MB. The limiting direction is the one that takes 2 ms, not 1 ms.
  Machine other_way = kMachine;
  std::swap(other_way.h2d, other_way.d2h);
  CHECK(limits(one_gap(10_us), kMachine, false) == all(Resource::kH2d));
  CHECK(limits(one_gap(10_us), other_way, false) == all(Resource::kD2h));
  // An op of 3 ms hides the swap-in of 2 ms, but no op hides the swap-out of 1 ms. Recomputing takes 100 us.
  CHECK(limits(one_gap(10_us, 3_ms), kMachine, false) == all(Resource::kD2h));
  CHECK(limits(one_gap(10_us, 3_ms), kMachine, true) == all_hybrid(Resource::kRecompute));
  // On a link that takes 20 us each way, the swap-out costs less than recomputing.
  Machine fast = kMachine;
  fast.d2h.rate = fast.h2d.rate = BytesPerSecond{50'000'000'000};
  CHECK(limits(one_gap(10_us, 3_ms), fast, true) == all_hybrid(Resource::kD2h));
}

TEST_CASE("a run reaches the window bound") {
  const Trace trace = one_gap(10_us);
  script() = {{Verb::kSwapOut, OpId{1}, 0, {}, {}}};
  const RunSpec spec{
      .pool = "ideal", .policy = "scripted", .capacity = 1'000'000_B, .machine = kMachine, .overhead_limit = {}};
  const Result result = simulate(trace, spec);
  script().clear();
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(result.totals.makespan == 160_us + 1_ms + 2_ms);  // the swap-in begins at op1's end, in the bound at its start
  CHECK(bound_of(trace, 1'000'000_B, "swap-window") <= result.totals.makespan);
}

TEST_CASE("ops between the uses hide copies") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1'000'000_B});
  build.run({.duration = 100_us}, {{a, Access::kWrite}});
  build.run({.duration = 700_us}, {});
  const BufferId b = build.alloc({.size = 1'000'000_B});
  build.run({.duration = 10_us}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 1500_us}, {});
  build.run({.duration = 50_us}, {{a, Access::kRead}});
  build.free(a);
  const Trace trace = build.finish();
  // An op of 700 us hides a part of the swap-out (1 ms); op2 and an op of 1.5 ms hide a part of the swap-in (2 ms).
  check_tight(bound_of(trace, 1'000'000_B, "swap-window"), 2360_us + 300_us + 490_us);
}

TEST_CASE("content is recomputed if that is cheaper than copying it") {
  const Trace trace = one_gap(10_us);
  // A rerun of op0 takes 100 us; with copies of everything the step takes 3 ms more.
  check_tight(bound_of(trace, 1'000'000_B, "hybrid-window", true), 160_us + 100_us);
  // At 1.9 MB, the last tenth is absent together with the rest.
  check_tight(bound_of(trace, 1'900'000_B, "hybrid-window", true), 160_us + 100_us);
}

TEST_CASE("an op that runs again needs its inputs, which are recomputed too, or swapped in") {
  // While op2 runs, only w is in memory. For b, op1 runs again (50 us). It reads a, which the program has freed. Either
  // op0 runs again too (30 us), or a is swapped in. 1 kB takes 1 us out and 2 us in, which op1 and op2 hide. Of 1 MB,
  // the bound lets x bytes leave during op1 and come back in 2x - 10 us, and lets the rest be recomputed beside that,
  // in 80 us (1 - x / 1 MB): both take 76.538 us at x = 43'269 B.
  for (const auto& [size, again] : {std::pair{1'000'000_B, 76'538_ns}, std::pair{1'000_B, 50'000_ns}}) {
    TraceBuilder build;
    const BufferId a = build.alloc({.size = size});
    build.run({.duration = 30_us}, {{a, Access::kWrite}});
    const BufferId b = build.alloc({.size = 1'000'000_B});
    build.run({.duration = 50_us}, {{a, Access::kRead}, {b, Access::kWrite}});
    build.free(a);
    const BufferId w = build.alloc({.size = 2'000'000_B});
    build.run({.duration = 10_us}, {{w, Access::kWrite}});
    build.free(w);
    build.run({.duration = 1_us}, {{b, Access::kRead}});
    build.free(b);
    const Trace trace = build.finish();
    for (const bool steady : {false, true}) {
      check_tight(bound_of(trace, 2'000'000_B, "hybrid-window", true, steady), 91_us + 50_us);
      check_tight(bound_of(trace, 2'000'000_B, "hybrid-cut", true, steady), 91_us + again);
    }
  }
}

TEST_CASE("content from before the step needs a swap-out only in a repeated step that changes it") {
  for (const bool changed : {false, true}) {
    TraceBuilder build;
    const BufferId a = build.existing({.size = 1'000'000_B, .outlives = true});
    build.run({.duration = 100_us}, {{a, changed ? Access::kReadWrite : Access::kRead}});
    const BufferId b = build.alloc({.size = 1'000'000_B});
    build.run({.duration = 10_us}, {{b, Access::kWrite}});
    build.free(b);
    const Trace trace = build.finish();
    const Absences once = find_absences(trace, false);
    const Absences repeated = find_absences(trace, true);
    REQUIRE(repeated.absences.size() == 1);
    const Absence& absence = repeated.absences[0];
    CHECK(absence.first == 1);
    CHECK(absence.last == 2);
    CHECK(absence.due == 2);
    CHECK(absence.copied_from == (changed ? 1 : Absence::kAlways));
    const BoundQuery query{.trace = trace, .machine = kMachine, .capacity = 1'000'000_B, .swap = true, .steady = true};
    const std::vector<Bound> bounds = compute_bounds(query, BoundEffort::kQuick);
    REQUIRE(bounds.back().feasible);
    // The swap-out runs only during the wait, the swap-in during op1 (from its start on) and the wait.
    check_tight(bounds.back().makespan, 110_us + (changed ? 1_ms : 0_ms) + 2_ms - 10_us);
    // In a single step, the content may begin or end on the host.
    REQUIRE(once.absences.size() == 1);
    CHECK(once.absences[0].due == Absence::kNever);
  }
}

TEST_CASE("content from before the step that leaves again must have been swapped out or in before") {
  // Op 0 and the last op read a weight; op 1 needs its memory. If it begins on the device, it leaves after op 0's
  // start, in 1 ms. If it begins on the host, it is swapped in for op 0, in 2 ms. If it is divided and op 0 takes 100
  // us, 300 kB are swapped in in 600 us, and 700 kB are swapped out in 700 us.
  for (const Nanos first : {100_us, 3_ms}) {
    TraceBuilder build;
    const BufferId weight = build.existing({.size = 1'000'000_B, .outlives = true});
    build.run({.duration = first}, {{weight}});
    const BufferId b = build.alloc({.size = 1'000'000_B});
    build.run({.duration = 10_us}, {{b, Access::kWrite}});
    build.free(b);
    build.run({.duration = 50_us}, {{weight}});
    const Trace trace = build.finish();
    const Absences step = find_absences(trace, false);
    CHECK(step.beginnings == std::vector<Beginning>{{1'000'000_B, 0}});
    const Nanos work = first + 60_us, back = 2_ms - 10_us;
    // `part` is the wait before op 1. Both directions move 1 MB together: 0.5 B/ns in during the wait, and 1 B/ns out
    // during op 0 and the wait.
    const Nanos part = first < 1_ms ? Nanos{(1'000'000 - first.count()) * 2 / 3} : Nanos{};
    check_tight(bound_of(trace, 1'000'000_B, "swap-window"), work + part + back);
    for (const Bound& bound : compute_bounds(
             {.trace = trace, .machine = kMachine, .capacity = 1'000'000_B, .swap = true}, BoundEffort::kAll)) {
      if (bound.name == "swap-fluid") check_tight(bound.makespan, work + part + 2_ms);
      if (bound.name == "swap-whole") check_tight(bound.makespan, work + std::max(1_ms - first, 0_us) + 2_ms);
    }
  }
}

TEST_CASE("content that is overwritten before it is read again needs no place in between") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1'000'000_B});
  build.run({.duration = 100_us}, {{a, Access::kWrite}});
  build.run({.duration = 10_us}, {});
  build.run({.duration = 100_us}, {{a, Access::kWrite}});
  build.run({.duration = 10_us}, {{a, Access::kRead}});
  build.free(a);
  const Trace trace = build.finish();
  const Absences step = find_absences(trace, false);
  CHECK(step.absences.empty());
  CHECK(step.load == std::vector<Bytes>{1'000'000_B, 0_B, 1'000'000_B, 1'000'000_B});
}

TEST_CASE("a new allocation gives a buffer its initial content again, without a copy") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1'000'000_B});
  build.run({.duration = 100_us}, {{a, Access::kRead}});
  const BufferId b = build.alloc({.size = 1'000'000_B});
  build.run({.duration = 10_us}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 50_us}, {{a, Access::kRead}});
  build.free(a);
  const Trace trace = build.finish();
  const std::uint32_t came = trace.first_version(a).value(), room = trace.made(OpId{1})[0].value();
  const auto counted = [](Verb verb, std::uint32_t op, std::uint32_t subject) {
    return Action{verb, OpId{op}, subject, kNoAddress, 1'000'000_B};
  };
  const Plan plan{{counted(Verb::kAlloc, 0, came), counted(Verb::kRun, 0, 0), counted(Verb::kDrop, 1, came),
                   counted(Verb::kAlloc, 1, room), counted(Verb::kRun, 1, 1), counted(Verb::kFree, 2, room),
                   counted(Verb::kAlloc, 2, came), counted(Verb::kRun, 2, 2), counted(Verb::kFree, 2, came)}};
  const RunSpec spec{.pool = "ideal", .capacity = 1'000'000_B, .machine = kMachine};
  CHECK(replay(trace, spec, plan).makespan == 160_us);
  for (const bool steady : {false, true}) {
    const std::vector<Bound> bounds =
        compute_bounds({.trace = trace, .machine = kMachine, .capacity = spec.capacity, .swap = true, .steady = steady},
                       BoundEffort::kAll);
    REQUIRE(bounds.size() == 1);
    CHECK(bounds[0].makespan == 160_us);
  }
}

TEST_CASE("a step is infeasible if more bytes must be absent than can be") {
  const Trace trace = one_gap(10_us);
  const BoundQuery query{.trace = trace, .machine = kMachine, .capacity = 999'999_B, .swap = true};
  CHECK_FALSE(compute_bounds(query, BoundEffort::kQuick).back().feasible);
}

TEST_CASE("windows of two peaks add up if they do not overlap") {
  TraceBuilder build;
  for (int peak = 0; peak < 2; ++peak) {
    const BufferId a = build.alloc({.size = 1'000'000_B});
    build.run({.duration = 100_us}, {{a, Access::kWrite}});
    const BufferId b = build.alloc({.size = 1'000'000_B});
    build.run({.duration = 10_us}, {{b, Access::kWrite}});
    build.free(b);
    build.run({.duration = 50_us}, {{a, Access::kRead}});
    build.free(a);
  }
  const Trace trace = build.finish();
  check_tight(bound_of(trace, 1'000'000_B, "swap-window"), (160_us + 1_ms + 2_ms - 10_us) * 2);
  check_tight(bound_of(trace, 1'000'000_B, "hybrid-window", true), (160_us + 100_us) * 2);
}

TEST_CASE("content that is swapped out once and absent twice is waited for once") {
  // a leaves for b twice, before op 1 and before op 3. The second time, the host has its content already.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100'000_B});
  build.run({.duration = 1_us}, {{a, Access::kWrite}});
  for (int i = 0; i < 2; ++i) {
    const BufferId b = build.alloc({.size = 100'000_B});
    build.run({.duration = 1_us}, {{b, Access::kWrite}});
    build.free(b);
    build.run({.duration = 1_us}, {{a, Access::kRead}});
  }
  build.free(a);
  const Trace trace = build.finish();
  Machine machine = kMachine;
  machine.h2d.rate = BytesPerSecond{1'000'000'000'000};
  RunSpec spec{.pool = "ideal", .policy = "lru-swap", .capacity = 100'000_B, .machine = machine};
  spec.overhead_limit = std::nullopt;
  const Result run = simulate(trace, spec);
  REQUIRE(run.outcome == Outcome::kOk);
  REQUIRE(run.totals.swap_out == 100'000_B);
  for (const bool steady : {false, true})
    for (const Bound& bound :
         compute_bounds({.trace = trace, .machine = machine, .capacity = spec.capacity, .swap = true, .steady = steady},
                        BoundEffort::kAll)) {
      INFO(bound.name);
      CHECK(bound.makespan <= run.totals.makespan);
    }
}

TEST_CASE("the fluid bound equals the window bound if one instant decides, and is larger if several do") {
  const auto fluid = [](const Trace& trace, Bytes capacity, bool remat) {
    const BoundQuery query{.trace = trace, .machine = kMachine, .capacity = capacity, .swap = true, .remat = remat};
    const std::string name = remat ? "hybrid-fluid" : "swap-fluid";
    for (const Bound& bound : compute_bounds(query, BoundEffort::kAll))
      if (bound.name == name) return bound.makespan;
    return Nanos{};
  };
  const Trace trace = one_gap(10_us);
  // While op1 runs, there is no memory for a swap-in: 10 us more than by the window bound.
  check_tight(fluid(trace, 1'000'000_B, false), 160_us + 1_ms + 2_ms);
  check_tight(fluid(trace, 1'500'000_B, false), 160_us + 1_ms + 2_ms);
  // In the linear program, reruns may overlap swap-outs before op1, so this bound is a few per cent lower.
  CHECK(fluid(trace, 1'000'000_B, true) <= 160_us + 100_us);
  CHECK(fluid(trace, 1'000'000_B, true) >= 160_us + 95_us);
  CHECK(fluid(trace, 2'000'000_B, false) == Nanos{});
}

TEST_CASE("a step has no overhead from the capacity on at which its ops hide all copies") {
  // Op 2 takes no time and needs 1 MB. Ten buffers of 100 kB may leave in 400 us before it and return in 400 us after
  // it: four of them can leave, and two can return.
  TraceBuilder build;
  std::vector<TraceBuilder::Touch> made, read;
  for (int i = 0; i < 10; ++i) {
    made.push_back({build.alloc({.size = 100'000_B}), Access::kWrite});
    read.push_back({made.back().buffer, Access::kRead});
  }
  build.run({.duration = 100_us}, made);
  build.run({.duration = 400_us}, {});
  const BufferId b = build.alloc({.size = 1'000'000_B});
  build.run({.duration = 0_us}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 400_us}, {});
  build.run({.duration = 50_us}, read);
  const Trace trace = build.finish();
  BoundQuery query{.trace = trace, .machine = kMachine, .swap = true};
  const Bytes swapping = least_free_capacity(query);
  query.swap = false;
  const Bytes keeping = least_free_capacity(query);
  // The result is exact to a millionth of the peak (2 B) and of the step's time (less than 1 B on the faster link).
  CHECK(swapping.count() <= 1'800'000);
  CHECK(swapping.count() >= 1'799'990);
  CHECK(keeping.count() <= 2'000'000);
  CHECK(keeping.count() >= 1'999'998);
}

}  // namespace tidepool::window_bound_test
