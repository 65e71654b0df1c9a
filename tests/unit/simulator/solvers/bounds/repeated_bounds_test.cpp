// Bounds on the mean time of a step that is repeated endlessly: closed forms, and runs that are as fast.
#include <map>
#include <string>
#include <vector>

#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/scripted_policy.hpp"
#include "traces/builder.hpp"

namespace tidepool::repeated_bounds_test {

namespace {

const Machine kMachine = tests::byte_per_nano();

/// The time of each bound, by its name.
std::map<std::string, Nanos> bounds_of(const Trace& trace, Bytes capacity, bool steady = true, bool remat = false) {
  std::map<std::string, Nanos> bounds;
  for (const Bound& bound : compute_bounds(
           {.trace = trace, .machine = kMachine, .capacity = capacity, .swap = true, .remat = remat, .steady = steady},
           BoundEffort::kAll)) {
    REQUIRE(bound.feasible);
    bounds[bound.name] = bound.makespan;
  }
  return bounds;
}

/// Time of the last of many iterations.
Nanos steady_time(const Trace& trace, Bytes capacity, const std::string& policy, std::vector<Action> script = {}) {
  tests::script() = std::move(script);
  const Result run = simulate(trace, {.pool = "ideal",
                                      .policy = policy,
                                      .capacity = capacity,
                                      .machine = kMachine,
                                      .overhead_limit = {},
                                      .iterations = 20});
  tests::script().clear();
  INFO(run.message);
  REQUIRE(run.outcome == Outcome::kOk);
  return run.totals.makespan;
}

}  // namespace

TEST_CASE("content that the first op of an iteration reads may be absent until the end of the iteration before") {
  // Only op 0 uses the weight, and reads it. op 1 needs its memory; op 2 hides a part of its swap-in.
  const auto step = [](bool activation) {
    TraceBuilder build;
    const BufferId weight = build.existing({.size = 1'000_B});
    std::vector<TraceBuilder::Touch> touches{{weight}};
    if (activation) touches.push_back({build.alloc({.size = 1'000_B}), Access::kWrite});
    build.run({.duration = 10_ns}, touches);
    const BufferId room = build.alloc({.size = 1'000_B});
    build.run({.duration = 10_ns}, {{room, Access::kWrite}});
    build.free(room);
    build.run({.duration = activation ? 1'200_ns : 600_ns}, {});
    if (activation) {
      build.run({.duration = 10_ns}, {{touches.back().buffer}});
      build.free(touches.back().buffer);
    }
    return build.finish();
  };
  const std::vector<Action> prefetch{{Verb::kSwapIn, OpId{2}, 0, {}, {}}};
  // Of the swap-in's 1000 ns, op 2 hides 600 ns; the window bound assumes that op 1 hides another 10 ns.
  const Trace weight = step(false);
  std::map<std::string, Nanos> bounds = bounds_of(weight, 1'000_B);
  CHECK(steady_time(weight, 1'000_B, "scripted+lru-swap", prefetch) == 620_ns + 400_ns);
  CHECK(bounds["swap-fluid"] <= 620_ns + 400_ns);
  CHECK(bounds["swap-fluid"] >= 620_ns + 398_ns);
  CHECK(bounds["swap-window"] <= 620_ns + 390_ns);
  CHECK(bounds["swap-window"] >= 620_ns + 388_ns);
  CHECK(bounds_of(weight, 1'999_B)["swap-fluid"] == bounds["swap-fluid"]);  // a part of the weight cannot stay
  CHECK_FALSE(bounds_of(weight, 2'000_B).contains("swap-fluid"));
  // No time is lost if the weight leaves and op 2 hides its whole swap-in. The activation that op 0 makes stays.
  const Trace both = step(true);
  CHECK(steady_time(both, 2'000_B, "scripted+lru-swap", prefetch) == 1'230_ns);
  CHECK(bounds_of(both, 2'000_B) == std::map<std::string, Nanos>{{"critical-path", 1'230_ns}});
}

TEST_CASE("bounds allow that content which outlives the step is recomputed before the step ends") {
  // Either an op reads a buffer and the next op overwrites it, or an op makes a buffer that outlives the step. The op
  // after that needs the buffer's memory. A rerun of the writing op takes 100 ns, a copy in either direction 1000 ns.
  for (const bool from_before : {false, true})
    for (const bool steady : {false, true}) {
      INFO("from before " << from_before << ", steady " << steady);
      TraceBuilder build;
      BufferId kept;
      if (from_before) kept = build.existing({.size = 1'000_B});
      build.run({.duration = 100_ns}, {});
      if (from_before) build.run({.duration = 50_ns}, {{kept}});
      if (!from_before) kept = build.alloc({.size = 1'000_B});
      build.run({.duration = 100_ns}, {{kept, Access::kWrite}});
      const BufferId room = build.alloc({.size = 1'000_B});
      build.run({.duration = 100_ns}, {{room, Access::kWrite}});
      build.free(room);
      build.run({.duration = 100_ns}, {});
      const Trace trace = build.finish();
      const Nanos work = from_before ? 450_ns : 400_ns;
      const Result run = simulate(trace, {.pool = "ideal",
                                          .policy = "dtr",
                                          .capacity = 1'000_B,
                                          .machine = kMachine,
                                          .overhead_limit = {},
                                          .iterations = steady ? 20 : 1});
      REQUIRE(run.outcome == Outcome::kOk);
      CHECK(run.totals.makespan == work + 100_ns);
      std::map<std::string, Nanos> bounds = bounds_of(trace, 1'000_B, steady, true);
      CHECK(bounds["hybrid-fluid"] <= work + 100_ns);
      CHECK(bounds["hybrid-fluid"] >= work + 80_ns);  // a part may be copied meanwhile
      CHECK(bounds["hybrid-window"] <= work + 100_ns);
      CHECK(bounds["hybrid-window"] >= work + 98_ns);
    }
}

TEST_CASE("content that is recomputed before the step ends is still copied if it is absent when the next one begins") {
  // op 2 writes the weight and op 1 of the next iteration reads it; op 0 needs its memory.
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 1'000_B});
  const auto needs_room = [&] {
    const BufferId room = build.alloc({.size = 1'000_B});
    build.run({.duration = 100_ns}, {{room, Access::kWrite}});
    build.free(room);
  };
  needs_room();
  build.run({.duration = 100_ns}, {{weight}});
  build.run({.duration = 100_ns}, {{weight, Access::kWrite}});
  build.run({.duration = 100_ns}, {});
  const Trace trace = build.finish();
  // The swap-out follows op 2, and op 3 hides 100 ns of it. The swap-in follows op 0, whether or not ops run again.
  const VersionId written = trace.made(OpId{2})[0];
  const std::vector<Action> early{{Verb::kSwapOut, OpId{3}, written.value(), {}, {}}};
  CHECK(steady_time(trace, 1'000_B, "scripted+lru-swap", early) == 400_ns + 900_ns + 1'000_ns);
  for (const bool remat : {false, true}) {
    std::map<std::string, Nanos> bounds = bounds_of(trace, 1'000_B, true, remat);
    const std::string fluid = remat ? "hybrid-fluid" : "swap-fluid";
    CHECK(bounds[fluid] <= 2'300_ns);
    CHECK(bounds[fluid] >= 2'298_ns);
  }
}

TEST_CASE("waits before and after an op are not added up if one wait serves the next iteration, too") {
  // op 0 makes a (1 kB), op 1 reads b (60 kB, never changed), op 2 needs their memory, op 3 reads a. b must be back
  // before the next op 1, and the next a must leave before the next op 2: one wait for both.
  TraceBuilder build;
  const BufferId b = build.existing({.size = 60'000_B});
  const BufferId a = build.alloc({.size = 1'000_B});
  build.run({.duration = 50'000_ns}, {{a, Access::kWrite}});
  build.run({.duration = 10_ns}, {{b}});
  const BufferId room = build.alloc({.size = 61'000_B});
  build.run({.duration = 10_ns}, {{room, Access::kWrite}});
  build.free(room);
  build.run({.duration = 10_ns}, {{a}});
  build.free(a);
  const Trace trace = build.finish();
  const VersionId made = trace.made(OpId{0})[0];
  const std::vector<Action> script{{Verb::kSwapOut, OpId{1}, made.value(), {}, {}},
                                   {Verb::kSwapIn, OpId{3}, made.value(), {}, {}},
                                   {Verb::kSwapIn, OpId{3}, 0, {}, {}}};
  // The swap-ins of a and b take 61000 ns from the end of op 2 on, and op 3 and op 0 hide 50010 ns of them. There is no
  // wait after op 1, since a leaves while b is swapped in.
  CHECK(steady_time(trace, 61'000_B, "scripted+lru-swap", script) == 20_ns + 61'000_ns);
  for (const bool remat : {false, true}) {
    std::map<std::string, Nanos> bounds = bounds_of(trace, 61'000_B, true, remat);
    for (const auto& [name, bound] : bounds) {
      INFO(name);
      CHECK(bound <= 61'020_ns);
    }
    // The window bound cannot exclude that op 2 hides 10 ns as well. While z bytes of a are recomputed in 50 ns each,
    // the other bytes are swapped in, 10980 ns - z too late. The longer of these two times is at least 10764 ns.
    if (remat) CHECK(bounds["hybrid-window"] >= 50'030_ns + 10'764_ns - 2_ns);
    if (!remat) CHECK(bounds["swap-window"] >= 50'030_ns + 10'980_ns - 2_ns);
  }
}

}  // namespace tidepool::repeated_bounds_test
