// Whole plans instead of decisions, and planners that ask for the best of all plans of a tiny step.
#include "policies/planning/search/exact_plan.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/run.hpp"
#include "simulator/studies/sweep/grid.hpp"
#include "simulator/whole_plan.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/effort.hpp"
#include "tests/machines.hpp"
#include "tests/three_ops.hpp"
#include "tests/tiny_case.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::exact_plan_test {

namespace {

class Told final : public Policy, public WholePlanner {
 public:
  explicit Told(Plan plan) : plan_{std::move(plan)} {}
  std::optional<Plan> whole_plan() override { return plan_; }

 private:
  Plan plan_;
};

Result run_told(const Trace& trace, const RunSpec& spec, Plan plan) {
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(std::make_unique<Told>(std::move(plan)));
  return simulate_under(trace, spec, std::move(policies), true, true);
}

RunSpec spec_of(std::string policy, Bytes capacity, std::string pool = "ideal") {
  return {.pool = std::move(pool),
          .policy = std::move(policy),
          .capacity = capacity,
          .machine = tests::byte_per_nano(),
          .overhead_limit = {}};
}

/// Checks that a run ends well, with a plan that replays to its totals and reads the right bytes.
Result run(const Trace& trace, const RunSpec& spec) {
  Result result = simulate(trace, spec, true);
  INFO(spec.policy.text << " on " << spec.pool.text << ": " << result.message);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(replay(trace, spec, result.realised) == result.totals);
  CHECK(execute_on_host(trace, result.realised, {.threads = false}).outcome == HostOutcome::kOk);
  return result;
}

/// A weight of 1 kB is updated in 100 ns, then another buffer of 1 kB is made in 300 ns.
Trace updated_weight() {
  TraceBuilder build;
  const BufferId w = build.existing({.size = 1'000_B});
  build.run({.duration = 100_ns}, {{w, Access::kReadWrite}});
  const BufferId b = build.alloc({.size = 1'000_B});
  build.run({.duration = 300_ns}, {{b, Access::kWrite}});
  build.free(b);
  return build.finish();
}

}  // namespace

TEST_CASE("a whole plan is carried out action by action, in places of the run's pool") {
  const tests::ThreeOps step{4'096_B, {10_us, 10_us, 10_us}};
  const Plan plan = step.swapped(0_B, 4'096_B, 8'192_B);
  const RunSpec spec = spec_of("none", 16'384_B, "best-fit");
  const Result result = run_told(step.trace, spec, plan);
  INFO(result.message);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(result.totals.makespan == replay(step.trace, spec, plan).makespan);
  REQUIRE(result.realised.actions.size() == plan.actions.size());
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    CHECK(result.realised.actions[i].verb == plan.actions[i].verb);
    CHECK(result.realised.actions[i].subject == plan.actions[i].subject);
  }
}

TEST_CASE("a whole plan that cannot be carried out ends the run with the reason") {
  const tests::ThreeOps step{4'096_B, {10_us, 10_us, 10_us}};
  const Plan plan = step.swapped(0_B, 4'096_B, 8'192_B);
  const RunSpec spec = spec_of("none", 16'384_B);
  const auto message_without = [&](Verb verb) {
    Plan broken = plan;
    std::erase_if(broken.actions, [&](const Action& action) { return action.verb == verb; });
    const Result result = run_told(step.trace, spec, broken);
    CHECK(result.outcome == Outcome::kError);
    return result.message;
  };
  CHECK(
      message_without(Verb::kSwapIn) ==
      "the plan of this run cannot be executed: run op 2 before op 2: its input, version 0 of buffer 0, is not there");
  CHECK(message_without(Verb::kSwapOut) ==
        "the plan of this run cannot be executed: swap in version 0 before op 2: it is not on the host");
  Plan early = plan;
  early.actions.resize(2);
  CHECK(run_told(step.trace, spec, early).message == "the plan of this run ends before op 1");
  Plan strange = plan;
  strange.actions.push_back({.verb = Verb::kReserve});
  CHECK_THROWS_WITH(run_told(step.trace, spec, strange),
                    "reserve [0, +0) after the last op: a policy cannot decide this");
  strange.actions.back() = {.verb = Verb::kDrop, .subject = 99};
  CHECK_THROWS_WITH(run_told(step.trace, spec, strange), "drop version 99 after the last op: no such id");
  const Result full = run_told(step.trace, spec_of("none", 4'096_B), plan);
  CHECK(full.outcome == Outcome::kInfeasible);  // op 2 alone needs more memory
}

TEST_CASE("planners follow the best plan of a tiny step, alone and repeated") {
  // b begins when w has left. A single step takes 1000 + 100 + 1000 + 300 ns if it begins with w on the host. If w is
  // on the device at first, it must be there again at the end: 100 + 1000 + 300 + 1000 ns. In a repeated step, w leaves
  // and comes back once an iteration.
  const Trace trace = updated_weight();
  for (const char* pool : {"ideal", "best-fit"})
    for (const char* policy : {"tide", "tide(with=swap)"}) {
      RunSpec spec = spec_of(policy, 1'024_B, pool);
      CHECK(run(trace, spec).totals.makespan == 2'400_ns);
      spec.steady = true, spec.iterations = kUsualIterations;
      const Result result = run(trace, spec);
      CHECK(result.totals.makespan == 2'400_ns);
      CHECK(result.cycle.settled);
    }
}

TEST_CASE("steps of more than ten ops, chains of policies and several iterations are left to the search") {
  const Trace longer = tests::chain_trace(6), tiny = updated_weight();
  REQUIRE(longer.ops().size() > kMostExactOps);
  Result failed;
  failed.outcome = Outcome::kOutOfMemory;
  CHECK_FALSE(exact_answer(longer, spec_of("tide", 8'000_B), true, true, failed));
  RunSpec spec = spec_of("tide", 1'024_B);
  CHECK(exact_answer(tiny, spec, true, true, failed));
  CHECK_FALSE(exact_answer(tiny, spec_of("coop+tide", 1'024_B), true, true, failed));
  CHECK_FALSE(exact_answer(tiny, spec, false, true, failed));  // no faster plan exists
  spec.iterations = 2;
  CHECK_FALSE(exact_answer(tiny, spec, true, true, failed));
  spec.iterations = 1;
  Result free;
  free.baseline = free.totals.makespan = 400_ns;
  CHECK_FALSE(exact_answer(tiny, spec, true, true, free));
  free.totals.makespan = 2'400_ns;
  CHECK_FALSE(exact_answer(tiny, spec, true, true, free));  // the plan that was found is as fast
  free.totals.makespan = 2'401_ns;
  CHECK(exact_answer(tiny, spec, true, true, free));
}

TEST_CASE("with exact=off planners follow their search, and exact=on is never slower") {
  int faster = 0, found = 0;
  // With seeds 35 and 36, a search finds no plan that fits, although there is one.
  for (std::uint64_t seed = 21; seed <= (tests::kOptimised ? 40 : 24); ++seed) {
    const tests::TinyRecipe recipe = tests::tiny_recipe(seed, 5);
    const Trace trace = recipe.trace();
    for (const std::string pool : {"ideal", "best-fit", "pytorch"})
      for (const std::string policy : {"tide(effort=1", "tide(with=swap,effort=1", "tide-remat(effort=1"}) {
        RunSpec spec{.pool = pool,
                     .policy = policy + ",exact=off)",
                     .capacity = recipe.capacity(),
                     .machine = recipe.machine,
                     .steady = seed % 2 == 0,
                     .iterations = seed % 2 == 0 ? kUsualIterations : 1};
        const Result without = simulate(trace, spec);
        spec.policy = policy + ")";
        const Result with = simulate(trace, spec, true);
        INFO(fmt::format("seed {}: {} on {}: {}", seed, spec.policy.text, pool, with.message));
        if (without.outcome != Outcome::kOk) {
          found += with.outcome == Outcome::kOk;
          continue;
        }
        REQUIRE(with.outcome == Outcome::kOk);
        CHECK(with.totals.makespan <= without.totals.makespan);
        CHECK(replay(trace, spec, with.realised) == with.totals);
        CHECK(execute_on_host(trace, with.realised, {.threads = false}).outcome == HostOutcome::kOk);
        faster += with.totals.makespan < without.totals.makespan;
      }
  }
  INFO(faster << " are faster, " << found << " are found");
  if (tests::kOptimised) CHECK(faster > 5);
  if (tests::kOptimised) CHECK(found > 0);
}

}  // namespace tidepool::exact_plan_test
