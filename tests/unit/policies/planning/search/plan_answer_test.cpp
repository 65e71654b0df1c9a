// Whole plans instead of decisions.
#include "policies/planning/search/plan_answer.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/run.hpp"
#include "simulator/whole_plan.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/three_ops.hpp"

namespace tidepool::plan_answer_test {

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

}  // namespace tidepool::plan_answer_test
