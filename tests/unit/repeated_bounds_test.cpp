// Bounds on the mean time of a step that is repeated for ever: closed forms, and runs that meet them.
#include <map>
#include <string>
#include <vector>

#include "simulator/bounds/bound.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/scripted_policy.hpp"
#include "traces/builder.hpp"

using namespace tidepool;

namespace {

const Machine kMachine = tests::byte_per_nano();

/// By name.
std::map<std::string, Nanos> steady_bounds(const Trace& trace, Bytes capacity, bool remat = false) {
  std::map<std::string, Nanos> bounds;
  for (const Bound& bound : compute_bounds(
           {.trace = trace, .machine = kMachine, .capacity = capacity, .swap = true, .remat = remat, .steady = true},
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

TEST_CASE("what the first op of the next iteration reads may be away until the end of this one") {
  // A weight that is only read, by op 0; op 1 needs room; op 2 hides some of its way back.
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
  // Of 1000 ns op 2 hides 600, and op 1 another 10 for all that the window knows.
  const Trace weight = step(false);
  std::map<std::string, Nanos> bounds = steady_bounds(weight, 1'000_B);
  CHECK(steady_time(weight, 1'000_B, "scripted+lru-swap", prefetch) == 620_ns + 400_ns);
  CHECK(bounds["swap-fluid"] <= 620_ns + 400_ns);
  CHECK(bounds["swap-fluid"] >= 620_ns + 398_ns);
  CHECK(bounds["swap-window"] <= 620_ns + 390_ns);
  CHECK(bounds["swap-window"] >= 620_ns + 388_ns);
  CHECK_FALSE(steady_bounds(weight, 1'500_B).contains("swap-fluid"));  // half of it may stay
  // Nothing is lost where op 2 hides all of it: the activation that op 0 makes need not go instead.
  const Trace both = step(true);
  CHECK(steady_time(both, 2'000_B, "scripted+lru-swap", prefetch) == 1'230_ns);
  CHECK(steady_bounds(both, 2'000_B) == std::map<std::string, Nanos>{{"critical-path", 1'230_ns}});
}
