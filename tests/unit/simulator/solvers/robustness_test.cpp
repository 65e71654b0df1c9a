// Plans on machines whose ops are slower or faster than planned, and whose links are slower.
#include "simulator/solvers/robustness.hpp"

#include <algorithm>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/random_trace.hpp"
#include "traces/builder.hpp"

namespace tidepool::robustness_test {

namespace {

/// op0 writes a (1 MB; a copy takes 1 ms) in 100 us | an op of 1001 us without a | b (1 MB) for 10 us | ops of 1 us and
/// 1001 us | the last op reads a in 50 us.
Trace barely_hidden() {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1'000'000_B});
  build.run({.duration = 100_us}, {{a, Access::kWrite}});
  build.run({.duration = 1'001_us}, {});
  const BufferId b = build.alloc({.size = 1'000'000_B});
  build.run({.duration = 10_us}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 1_us}, {});
  build.run({.duration = 1'001_us}, {});
  build.run({.duration = 50_us}, {{a, Access::kRead}});
  build.free(a);
  return build.finish();
}

RunSpec room_for_one(std::string policy) {
  return {.pool = "ideal",
          .policy = std::move(policy),
          .capacity = 1'000'000_B,
          .machine = tests::byte_per_nano(),
          .overhead_limit = {}};
}

}  // namespace

TEST_CASE("a scenario has durations and rates that differ by at most the share, the same ones for the same seed") {
  const Trace trace = barely_hidden();
  RunSpec spec = room_for_one("tide");
  spec.machine.h2d.times = {{1'000_B, 3'000_ns}};
  spec.machine.h2d.latency = 1'000_ns;
  const std::vector<Scenario> scenarios = scenarios_around(trace, spec, 0.2, 1);
  REQUIRE(scenarios.size() == 6);
  CHECK(scenarios[0].trace.data() == trace.data());
  CHECK(scenarios[0].spec.machine == spec.machine);
  CHECK(scenarios[0].unlimited == 2'163_us);
  CHECK(scenarios[1].trace.data() == trace.data());
  CHECK(scenarios[1].spec.machine.d2h.rate == BytesPerSecond{800'000'000});
  CHECK(scenarios[1].spec.machine.h2d.times == std::vector<TimedSize>{{1'000_B, 3'500_ns}});  // 2 us of data at 0.8
  bool differs = false;
  for (std::size_t i = 2; i < scenarios.size(); ++i) {
    const Machine& machine = scenarios[i].spec.machine;
    CHECK(machine.d2h.rate >= BytesPerSecond{800'000'000});
    CHECK(machine.d2h.rate <= BytesPerSecond{1'000'000'000});
    differs |= machine.d2h.rate != machine.h2d.rate;
    Nanos sum;
    for (std::size_t k = 0; k < trace.ops().size(); ++k) {
      const Nanos is = scenarios[i].trace.ops()[k].duration, was = trace.ops()[k].duration;
      CHECK(is >= was * 8 / 10);
      CHECK(is <= was * 12 / 10);
      differs |= is != was;
      sum += is;
    }
    CHECK(scenarios[i].unlimited == sum);
  }
  CHECK(differs);
  const std::vector<Scenario> again = scenarios_around(trace, spec, 0.2, 1),
                              other = scenarios_around(trace, spec, 0.2, 2);
  CHECK(again[5].trace.data() == scenarios[5].trace.data());
  CHECK(other[5].trace.data() != scenarios[5].trace.data());
}

TEST_CASE("tide takes the fastest plan, or with `robust` the plan that is slowed least in its worst scenario") {
  const Trace trace = barely_hidden();
  const Result fast = simulate(trace, room_for_one("tide"), true);
  REQUIRE(fast.outcome == Outcome::kOk);
  CHECK(fast.totals.makespan == 2'163_us);  // no time lost: 1001 us hide each copy of 1 ms
  CHECK(fast.totals.recompute_count == 0);
  const Result robust = simulate(trace, room_for_one("tide(robust=0.2)"), true);
  REQUIRE(robust.outcome == Outcome::kOk);
  CHECK(robust.totals.makespan == 2'263_us);  // op0 runs once more
  CHECK(robust.totals.swap_out == 0_B);
  CHECK(simulate(trace, room_for_one("tide(robust=0.2)"), true).realised == robust.realised);

  const std::vector<Scenario> scenarios = scenarios_around(trace, room_for_one("tide"), 0.2, 1);
  const std::vector<ScenarioCost> fragile = costs_in(scenarios, fast.realised),
                                  firm = costs_in(scenarios, robust.realised);
  CHECK(fragile[0].makespan == 2'163_us);
  CHECK(fragile[1].makespan == 2'163_us + (1'250_us - 1'001_us) * 2);  // at 0.8 of the rate, a copy takes 1.25 ms
  CHECK(fragile[worst_of(fragile)].ratio > 1.2);
  CHECK(firm[1].makespan == 2'263_us);
  CHECK(firm[worst_of(firm)].ratio < 1.07);  // the rerun is at most 1.2 * 100 us of 0.8 * 2.163 ms
}

TEST_CASE("a plan can be executed in every scenario, whatever its policy, pool and machine") {
  Machine tiers = tests::uneven();
  tiers.host.capacity = 40_KiB;
  tiers.storage = {
      .write = {BytesPerSecond{300'000'000}, 5_us}, .read = {BytesPerSecond{400'000'000}, 5_us}, .capacity = 1_GiB};
  int plans = 0;
  for (const std::uint64_t seed : {1u, 2u, 3u})
    for (const char* policy : {"lru-swap", "coop", "tide(effort=20)"})
      for (const char* pool : {"best-fit", "pytorch", "tide-pool"})
        for (const Machine& machine : {tests::uneven(), tiers}) {
          INFO(seed << ' ' << policy << ' ' << pool << ' ' << machine.host.capacity.count());
          const Trace trace = tests::random_trace(seed, 60);
          RunSpec spec{.pool = pool, .policy = policy, .machine = machine};
          spec.capacity = Bytes{trace.ideal_peak().count() * 7 / 10};
          if (spec.pool == "pytorch") spec.capacity = 10_MiB;  // its segments have at least 2 MiB
          const Result result = simulate(trace, spec, true);
          if (result.outcome != Outcome::kOk) continue;
          ++plans;
          CHECK(costs_in(scenarios_around(trace, spec, 0.3, seed), result.realised)[0].makespan ==
                result.totals.makespan);
        }
  CHECK(plans >= 30);
}

TEST_CASE("a step without a limit also waits for the host to launch its ops") {
  const Trace trace = barely_hidden();
  RunSpec spec = room_for_one("none");
  spec.capacity = kNoLimit;
  spec.machine.launch = 300_us;
  const Result result = simulate(trace, spec, true);
  const std::vector<Scenario> scenarios = scenarios_around(trace, spec, 0, 1);
  CHECK(scenarios[0].unlimited == result.baseline);
  CHECK(result.baseline > 2'163_us);
  for (const ScenarioCost& cost : costs_in(scenarios, result.realised)) CHECK(cost.ratio == 1.0);
}

TEST_CASE("a link may lose almost all of its rate") {
  const Trace trace = barely_hidden();
  RunSpec spec = room_for_one("lru-swap");
  spec.machine.h2d.times = {{1'000'000_B, 1'000_us}};
  const Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  const std::vector<ScenarioCost> costs = costs_in(scenarios_around(trace, spec, 0.99, 1), result.realised);
  CHECK(costs[1].makespan - costs[0].makespan > 100'000_us);  // each copy takes 100 ms instead of 1 ms
}

TEST_CASE("a share that leaves a link without a rate is refused") {
  const Trace trace = barely_hidden();
  CHECK_THROWS_WITH(simulate(trace, room_for_one("tide(robust=1)")),
                    "tide: option 'robust' is '1'; expected 0 to 0.99");
}

TEST_CASE("the cost of a plan lies between those of slower and faster ops where a model estimated their times") {
  TraceData data = barely_hidden().data();
  const RunSpec spec = room_for_one("next-use");
  const Result measured = simulate(Trace{data}, spec, true);
  CHECK_FALSE(ratios_of_times(Trace{data}, spec, measured.realised));
  data.meta["times_error"] = "20 %";
  const Trace trace{data};
  const Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  const double ratio =
      static_cast<double>(result.totals.makespan.count()) / static_cast<double>(result.baseline.count());
  const auto between = ratios_of_times(trace, spec, result.realised);
  REQUIRE(between);
  CHECK(between->first <= ratio);
  CHECK(between->second >= ratio);
  CHECK(between->first < between->second);  // ops are off, the copies of 1 ms are not
}

TEST_CASE("a changed step that takes twice as long does so whatever the error of the model, but for the host's time") {
  TraceBuilder build, twice;
  for (int i = 0; i < 4; ++i) {
    build.run({.duration = 1_ms}, {});
    for (int again = 0; again < 2; ++again) twice.run({.duration = 1_ms}, {});
  }
  TraceData data = build.finish().data();
  const Trace changed = twice.finish();
  CHECK_FALSE(ratios_of_times(Trace{data}, changed, {}));
  data.meta["times_error"] = "20 %";
  const Trace step{data};
  CHECK(ratios_of_times(step, changed, {}) == RatioBetween{{2, 2}});
  const auto issued = ratios_of_times(step, changed, 100_us);  // the first op begins after 0.1 ms
  REQUIRE(issued);
  CHECK(issued->first == (100e3 + 8 * 0.8e6) / (100e3 + 4 * 0.8e6));
  CHECK(issued->second == (100e3 + 8 * 1.2e6) / (100e3 + 4 * 1.2e6));
  CHECK(to_text(RatioBetween{{1.021, 1.034}}, 1) == " (2.1 to 3.4)");
}

}  // namespace tidepool::robustness_test
