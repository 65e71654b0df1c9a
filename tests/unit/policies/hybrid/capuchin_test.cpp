// Capuchin's decisions in closed form.
#include <algorithm>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

namespace tidepool::capuchin_test {

namespace {

const Machine kMachine = tests::byte_per_nano();

Result run(const Trace& trace, Bytes capacity, int iterations = 1, const Machine& machine = kMachine,
           const std::string& policy = "capuchin(least=50B)") {
  const RunSpec spec{
      .pool = "ideal", .policy = policy, .capacity = capacity, .machine = machine, .iterations = iterations};
  Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(replay(trace, spec, result.realised) == result.totals);
  return result;
}

/// Op 0 makes a (100 B) from x (10 B) in `made` ns | op 1, 100 ns | op 2 makes and frees p (100 B), 10 ns | op 3, 10 ns
/// | ops of `durations` | the last op reads a. p is live until op 3 begins, so the peak period ends then.
Trace a_around_p(Nanos made, const std::vector<Nanos>& durations) {
  TraceBuilder build;
  const BufferId x = build.existing({.size = 10_B});
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = made}, {{x, Access::kRead}, {a, Access::kWrite}});
  build.run({.duration = 100_ns}, {});
  const BufferId p = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{p, Access::kWrite}});
  build.free(p);
  build.run({.duration = 10_ns}, {});
  for (const Nanos each : durations) build.run({.duration = each}, {});
  build.run({.duration = 10_ns}, {{a, Access::kRead}});
  build.free(a);
  build.run({.duration = 10_ns}, {{x, Access::kRead}});
  return build.finish();
}

}  // namespace

TEST_CASE("Capuchin swaps if copies are hidden, and otherwise takes the cheaper action") {
  // The swap-in of a takes 100 ns after the peak period. An op of 100 ns hides it; beside one of 60 ns, 40 ns are
  // exposed.
  const Result hidden = run(a_around_p(30_ns, {100_ns}), 110_B);
  CHECK(hidden.totals.makespan == hidden.baseline);
  CHECK(hidden.totals.swap_in == 100_B);
  for (const auto& [made, cost] : {std::pair{39_ns, 39_ns}, std::pair{40_ns, 40_ns}, std::pair{41_ns, 40_ns}}) {
    const Result result = run(a_around_p(made, {60_ns}), 110_B);
    CHECK(result.totals.makespan == result.baseline + cost);
    CHECK(result.totals.recompute == (made < 40_ns ? made : 0_ns));
    CHECK(result.totals.swap_in == (made < 40_ns ? 0_B : 100_B));
  }
}

TEST_CASE("Capuchin takes the tensor with the largest free time (FT), and evicts no more than passive mode had to") {
  // b's idle interval is shorter than a's. One of them must be evicted.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B}), b = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  build.run({.duration = 10_ns}, {{b, Access::kWrite}});
  build.run({.duration = 200_ns}, {});
  const BufferId p = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{p, Access::kWrite}});
  build.free(p);
  build.run({.duration = 200_ns}, {});
  build.run({.duration = 200_ns}, {});
  build.run({.duration = 10_ns}, {{b, Access::kRead}});
  build.run({.duration = 10_ns}, {{a, Access::kRead}});
  build.free(a);
  build.free(b);
  const Trace trace = build.finish();
  const Result result = run(trace, 200_B);
  CHECK(result.totals.makespan == result.baseline);
  CHECK(result.totals.swap_out == 100_B);
  for (const Action& action : result.realised.actions)
    if (action.verb == Verb::kSwapOut) CHECK(action.subject == trace.made(OpId{0})[0].value());
}

TEST_CASE("Capuchin counts sources that are to be recomputed as well") {
  // a (100 B) is made in 10 ns, b (100 B) from a. After the peak period, 80 ns are left for b and 85 ns for a, so 20 ns
  // and 15 ns of their swap-ins are exposed. a is recomputed. Then recomputing b takes 10 ns more than making it did.
  for (const auto& [made, recomputed] : {std::pair{9_ns, true}, std::pair{11_ns, false}}) {
    TraceBuilder build;
    const BufferId x = build.existing({.size = 10_B});
    const BufferId a = build.alloc({.size = 100_B}), b = build.alloc({.size = 100_B});
    build.run({.duration = 10_ns}, {{x, Access::kRead}, {a, Access::kWrite}});
    build.run({.duration = made}, {{a, Access::kRead}, {b, Access::kWrite}});
    build.run({.duration = 300_ns}, {});
    const BufferId p = build.alloc({.size = 200_B});
    build.run({.duration = 10_ns}, {{p, Access::kWrite}});
    build.free(p);
    build.run({.duration = 10_ns}, {});
    build.run({.duration = 80_ns}, {});
    build.run({.duration = 5_ns}, {{b, Access::kRead}});
    build.free(b);
    build.run({.duration = 10_ns}, {{a, Access::kRead}});
    build.free(a);
    build.run({.duration = 10_ns}, {{x, Access::kRead}});
    const Result result = run(build.finish(), 210_B);
    CHECK(result.totals.recompute == (recomputed ? 10_ns + made : 10_ns));
    CHECK(result.totals.makespan == result.baseline + (recomputed ? 19_ns : 20_ns + 10_ns));
  }
}

TEST_CASE("Capuchin measures the first of several iterations in passive mode") {
  const Trace trace = a_around_p(30_ns, {100_ns});
  const auto first_iteration = [&](const std::string& policy) {
    std::vector<Action> actions = run(trace, 110_B, 2, kMachine, policy).realised.actions;
    actions.erase(std::find_if(actions.begin(), actions.end(), [](const Action& a) { return a.verb == Verb::kNext; }),
                  actions.end());
    return actions;
  };
  CHECK(first_iteration("capuchin(least=50B)") == first_iteration("lru-swap"));
  const Result second = run(trace, 110_B, 2);
  CHECK(second.totals.makespan == second.baseline);
}

TEST_CASE("Capuchin moves an in-trigger earlier if a tensor was late") {
  // The memory has 260 B. p makes passive mode evict e (60 B), then a (100 B). To save 160 B, b and a are swapped out:
  // their FT is the largest. a is to be swapped in from 200 to 300 ns, before the op that reads it. But b's swap-out
  // runs until 230 ns and halves the rate of a's swap-in, so a is 15 ns late. An in-trigger that is one op of 10 ns
  // earlier saves 5 ns. Steps of 5 % of 100 ns reach the next op after one late iteration, and after that in every
  // second iteration.
  Machine machine = kMachine;
  machine.h2d.duplex_ppm = 500'000;
  TraceBuilder build;
  const BufferId e = build.alloc({.size = 60_B}), a = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{e, Access::kWrite}});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  build.run({.duration = 100_ns}, {});
  const BufferId b = build.alloc({.size = 100_B}), p = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{b, Access::kWrite}, {p, Access::kWrite}});
  build.free(p);
  build.run({.duration = 10_ns}, {});
  build.run({.duration = 10_ns}, {{e, Access::kRead}});
  build.free(e);
  for (int i = 0; i < 15; ++i) build.run({.duration = 10_ns}, {});
  build.run({.duration = 10_ns}, {{a, Access::kRead}});
  build.free(a);
  build.run({.duration = 1000_ns}, {});
  build.run({.duration = 10_ns}, {{b, Access::kRead}});
  build.free(b);
  const Trace trace = build.finish();
  for (const auto& [iterations, late] : {std::pair{2, 15_ns}, std::pair{3, 10_ns}, std::pair{4, 10_ns},
                                         std::pair{5, 5_ns}, std::pair{6, 5_ns}, std::pair{7, 0_ns}}) {
    INFO(iterations);
    const Result result = run(trace, 260_B, iterations, machine);
    CHECK(result.totals.swap_out == 200_B);
    CHECK(result.totals.makespan.count() == (result.baseline + late).count());
  }
}

TEST_CASE("a lead outside its range is refused") {
  const Trace trace = a_around_p(30_ns, {100_ns});
  for (const std::string lead : {"-1", "1e300"})
    CHECK_THROWS_WITH(run(trace, 110_B, 1, kMachine, "capuchin(lead=" + lead + ")"),
                      "capuchin: option 'lead' is '" + lead + "'; expected 0 to 1000");
}

}  // namespace tidepool::capuchin_test
