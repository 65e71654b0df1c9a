// Invariants of every registered pool and policy, on random traces, at capacities from 0.05 to 100 times the peak.
#include <fmt/format.h>

#include "simulator/engine/boundary.hpp"
#include "simulator/engine/confirmation.hpp"
#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/studies/sweep/grid.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/machines.hpp"
#include "tests/quick_spec.hpp"
#include "tests/random_trace.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::invariants_test {

using tidepool::tests::kOptimised;
using tidepool::tests::random_trace;

namespace {

const Machine kMachine = tests::uneven();

/// Every byte that an op or the step's end reads must be what the program without any policy would have read.
void check_bytes(const Trace& trace, const RunSpec& spec, const Result& result, bool threads) {
  HostOptions options{.copy_on_write = spec.assume.copy_on_write, .threads = threads, .arena = 1_MiB};
  const HostReport report = execute_on_host(trace, result.realised, options);
  INFO(report.message);
  CHECK(report.outcome == HostOutcome::kOk);
  CHECK(report.corrupt == Bytes{});
  CHECK(report.peak == result.totals.peak);
}

void check_run(const Trace& trace, const RunSpec& spec) {
  const Result result = simulate(trace, spec, true);
  INFO(result.message);
  REQUIRE(result.outcome != Outcome::kError);
  const Result again = simulate(trace, spec, true);
  CHECK(again.realised == result.realised);
  CHECK(again.totals == result.totals);
  CHECK(again.outcome == result.outcome);
  if (result.outcome != Outcome::kOk) {
    CHECK_FALSE(result.message.empty());
    return;
  }
  CHECK(replay(trace, spec, result.realised) == result.totals);
  CHECK(result.totals.footprint <= spec.capacity);
  // Fast streams may start the next iteration before the slowest stream has finished this one.
  if (spec.iterations == 1 || trace.data().streams.size() == 1) CHECK(result.totals.makespan >= result.baseline);
  CHECK(result.totals.actions == static_cast<std::int64_t>(result.realised.actions.size()));
  check_bytes(trace, spec, result, false);
}

}  // namespace

TEST_CASE("every policy on every pool keeps the invariants on random traces") {
  // Each seed tries a third of the capacities, so that three successive seeds try every policy on every pool at all of
  // them.
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 6 : 1); ++seed) {
    const Trace trace = random_trace(seed, 40 + static_cast<int>(seed) * 50);
    std::uint64_t turn = seed;
    for (const PoolInfo* pool : all_pools())
      for (const PolicyInfo* policy : all_policies())
        for (const double fraction : {0.05, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0, 1.5, 100.0}) {
          if (turn++ % 3 != 0) continue;
          INFO(fmt::format("seed {} pool {} policy {} capacity {}x", seed, pool->name, policy->name, fraction));
          RunSpec spec{.pool = tests::quick_spec(*pool), .policy = tests::quick_spec(*policy), .machine = kMachine};
          spec.capacity = Bytes{static_cast<std::int64_t>(fraction * static_cast<double>(trace.ideal_peak().count()))};
          check_run(trace, spec);
        }
  }
}

TEST_CASE("every policy keeps the invariants under the assumptions of the DTR simulator") {
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 12 : 3); ++seed) {
    const Trace trace = random_trace(seed, 60 + static_cast<int>(seed) * 20);
    for (const PolicyInfo* policy : all_policies()) {
      if (policy->kind == PolicyKind::kSwap) continue;  // the DTR simulator has no host
      for (const double fraction : {0.3, 0.5, 0.8, 1.0}) {
        INFO(fmt::format("seed {} policy {} capacity {}x", seed, policy->name, fraction));
        RunSpec spec{.pool = "ideal",
                     .policy = tests::quick_spec(*policy),
                     .machine = kMachine,
                     .assume = Assumptions::find("simrd")};
        spec.overhead_limit = 2.0;
        const Bytes peak = ideal_peak(trace, spec.assume);
        spec.capacity = Bytes{static_cast<std::int64_t>(fraction * static_cast<double>(peak.count()))};
        check_run(trace, spec);
      }
    }
  }
}

TEST_CASE("lanes that run concurrently read the same bytes") {
  int runs = 0, ended = 0;
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 8 : 2); ++seed) {
    const Trace trace = random_trace(seed, 120);
    for (const PolicyInfo* policy : all_policies()) {
      INFO(fmt::format("seed {} policy {}", seed, policy->name));
      RunSpec spec{.policy = tests::quick_spec(*policy), .machine = kMachine};
      spec.capacity = trace.ideal_peak() / 10 * 7;
      const Result result = simulate(trace, spec, true);
      ++runs;
      if (result.outcome != Outcome::kOk) continue;
      ++ended;
      check_bytes(trace, spec, result, true);
    }
  }
  INFO(ended << " of " << runs);
  CHECK(ended * 4 > runs);
}

TEST_CASE("every policy keeps the invariants over several iterations") {
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 12 : 2); ++seed) {
    const Trace trace = random_trace(seed, 60 + static_cast<int>(seed) * 10);
    for (const PolicyInfo* policy : all_policies())
      for (const double fraction : {0.5, 0.8, 1.2}) {
        INFO(fmt::format("seed {} policy {} capacity {}x", seed, policy->name, fraction));
        RunSpec spec{.policy = tests::quick_spec(*policy), .machine = kMachine, .iterations = 3};
        spec.capacity = Bytes{static_cast<std::int64_t>(fraction * static_cast<double>(trace.ideal_peak().count()))};
        check_run(trace, spec);
      }
  }
}

TEST_CASE("every policy keeps the invariants in the steady state, and its bounds") {
  int settled = 0, runs = 0;
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 12 : 2); ++seed) {
    const Trace trace = random_trace(seed, 60 + static_cast<int>(seed) * 10);
    BoundCache bounds;
    for (const PolicyInfo* policy : all_policies())
      for (const char* pool : {"ideal", "best-fit", "pytorch"})
        for (const double fraction : {0.5, 0.8, 1.2}) {
          INFO(fmt::format("seed {} policy {} pool {} capacity {}x", seed, policy->name, pool, fraction));
          RunSpec spec{.pool = pool,
                       .policy = tests::quick_spec(*policy),
                       .machine = kMachine,
                       .steady = true,
                       .iterations = 12};
          spec.capacity = Bytes{static_cast<std::int64_t>(fraction * static_cast<double>(trace.ideal_peak().count()))};
          check_run(trace, spec);
          const Result result = simulate(trace, spec);
          if (result.outcome != Outcome::kOk) continue;
          ++runs;
          if (!result.cycle.settled) continue;
          ++settled;
          const std::optional<Bound> bound = bounds.find(trace, spec);
          if (!bound) continue;
          CHECK(bound->feasible);
          CHECK(bound->makespan <= result.totals.makespan);
        }
  }
  INFO(settled << " of " << runs << " settled");
  CHECK(settled * 10 > runs * 9);
}

namespace {

/// The plan with its cycle appended once more. At least one iteration must come before the cycle.
Plan with_cycle_again(Plan plan) {
  auto begin = plan.actions.end();
  for (int left = plan.cycle; left > 0;)
    if ((--begin)->verb == Verb::kNext) --left;
  const std::vector<Action> cycle(begin, plan.actions.end());
  plan.actions.insert(plan.actions.end(), cycle.begin(), cycle.end());
  return plan;
}

}  // namespace

TEST_CASE("the cycle that a run settles into can be carried out again, and costs the same again") {
  int settled = 0, longer = 0;
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 24 : 2); ++seed) {
    const Trace trace = random_trace(seed, 60 + static_cast<int>(seed) * 5);
    for (const PolicyInfo* policy : all_policies())
      for (const double fraction : {0.5, 0.8}) {
        INFO(fmt::format("seed {} policy {} capacity {}x", seed, policy->name, fraction));
        RunSpec spec{.pool = "ideal",
                     .policy = tests::quick_spec(*policy),
                     .machine = kMachine,
                     .steady = true,
                     .iterations = kUsualIterations};
        spec.capacity = Bytes{static_cast<std::int64_t>(fraction * static_cast<double>(trace.ideal_peak().count()))};
        const Result result = simulate(trace, spec, true);
        if (result.outcome != Outcome::kOk || !result.cycle.settled || result.cycle.lead_in == 0) continue;
        ++settled;
        const int cycle = result.cycle.iterations, before = result.cycle.lead_in;
        longer += cycle > 1 ? 1 : 0;
        const std::vector<Totals> costs = costs_of_iterations(trace, spec, with_cycle_again(result.realised));
        REQUIRE(std::ssize(costs) == before + 2 * cycle);
        const std::span again = std::span{costs}.last(static_cast<std::size_t>(cycle));
        const Totals mean = mean_of_last(again, cycle);
        CHECK(mean.makespan == result.totals.makespan);
        CHECK(mean.stall == result.totals.stall);
        CHECK(mean.swap_out == result.totals.swap_out);
        CHECK(mean.swap_in == result.totals.swap_in);
        CHECK(mean.recompute == result.totals.recompute);
        CHECK(mean.peak == result.totals.peak);
      }
  }
  INFO(settled << " runs settle after a first iteration, " << longer << " of them into more than one");
  CHECK(settled > (kOptimised ? 100 : 5));
}

TEST_CASE("every pool keeps the invariants over several iterations") {
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 12 : 3); ++seed) {
    const Trace trace = random_trace(seed, 60 + static_cast<int>(seed) * 10);
    for (const PoolInfo* pool : all_pools())
      for (const char* policy : {"none", "lru-swap"})
        for (const double fraction : {0.5, 0.9, 100.0}) {
          INFO(fmt::format("seed {} pool {} policy {} capacity {}x", seed, pool->name, policy, fraction));
          RunSpec spec{.pool = tests::quick_spec(*pool), .policy = policy, .machine = kMachine, .iterations = 3};
          const double peak = static_cast<double>(trace.ideal_peak().count());
          spec.capacity = Bytes{static_cast<std::int64_t>(fraction * peak)};
          check_run(trace, spec);
        }
  }
}

}  // namespace tidepool::invariants_test
