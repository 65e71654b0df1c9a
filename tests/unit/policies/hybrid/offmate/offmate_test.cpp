// OffMate's integer program on chains with known answers, and the policy in closed form.
#include "policies/hybrid/offmate/offload_program.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"
#include "tests/machines.hpp"
#include "tests/residual_trace.hpp"

namespace tidepool::offmate_test {

namespace {

/// Three stages with steps of 100 ns. Each stage saves 100 B and uses no other memory. Copies take 1 ns per byte. The
/// forward steps are 0, 1 and 2, the backward steps 3, 4 and 5.
OffloadProblem three_stages(Bytes room) {
  const StageOption keep{.first = 100_ns,
                         .again = 100_ns,
                         .alone = 100_ns,
                         .backward = 100_ns,
                         .saved = 100_B,
                         .forward_peak = 100_B,
                         .backward_peak = 100_B};
  OffloadProblem problem;
  for (int i = 0; i < 3; ++i) {
    problem.chain.stages.push_back(
        {.first = 100_ns, .again = 100_ns, .output = 0_B, .sweep_peak = 0_B, .gradient = 0_B, .options = {keep}});
    problem.movable.push_back({100_B});
  }
  problem.d2h = problem.h2d = {.rate = BytesPerSecond{1'000'000'000}, .latency = 0_ns};
  problem.room = room;
  return problem;
}

const std::vector<Bytes> kNothing(6);

}  // namespace

TEST_CASE("OffMate copies as many bytes as exceed the memory, while other stages run") {
  const auto plan = plan_offload(three_stages(250_B), 100);
  REQUIRE(plan);
  // Steps 2 and 3 need 300 B. Copies of stage 0 during step 1, and back during step 4, take no time. Copies of stage 0
  // during its own step, or of stage 1 during step 1, would take 50 ns.
  CHECK((*plan)[0].out == std::vector{0_B, 50_B, 50_B, 50_B, 50_B, 50_B});
  CHECK((*plan)[0].in == std::vector{0_B, 0_B, 0_B, 0_B, 50_B, 50_B});
  CHECK((*plan)[1].out == kNothing);
  CHECK((*plan)[2].out == kNothing);
}

TEST_CASE("if copies are slow, OffMate takes the option that runs ops again") {
  OffloadProblem problem = three_stages(250_B);
  StageOption again = problem.chain.stages[1].options[0];
  again.backward = 130_ns;
  again.saved = 50_B;
  problem.chain.stages[1].options.push_back(again);
  problem.movable[1].push_back(50_B);
  const auto fast = plan_offload(problem, 100);
  REQUIRE(fast);
  CHECK((*fast)[1].option == 0);
  CHECK((*fast)[0].out.back() == 50_B);
  // At this rate, 50 B take 250 ns: at least 150 ns more than the step that hides them, in each direction.
  problem.d2h.rate = problem.h2d.rate = BytesPerSecond{200'000'000};
  const auto slow = plan_offload(problem, 100);
  REQUIRE(slow);
  CHECK((*slow)[1].option == 1);
  for (const StageOffload& stage : *slow) CHECK(stage.out == kNothing);
}

TEST_CASE("OffMate has no plan if there is no memory for the bytes that must be swapped in") {
  // The bytes that are swapped in during step 4 are resident beside the values of stage 1.
  CHECK_FALSE(plan_offload(three_stages(199_B), 100));
  const auto plan = plan_offload(three_stages(200_B), 100);
  REQUIRE(plan);
  CHECK((*plan)[0].out == std::vector{0_B, 100_B, 100_B, 100_B, 100_B, 100_B});
  CHECK((*plan)[0].in == std::vector{0_B, 0_B, 0_B, 0_B, 100_B, 100_B});
}

TEST_CASE(
    "OffMate copies one value of a chain of residual blocks at no cost, and runs a cheap op again if copies are "
    "expensive") {
  const Trace trace = tests::residual_trace({{}, {}, {}});
  const Bytes capacity = trace.ideal_peak() - 1'000_B;
  const Result nothing = tests::exact_run_that_ends_well(trace, "none");
  const Result copied = tests::exact_run_that_ends_well(trace, "offmate", capacity);
  CHECK(copied.totals.swap_out == 1'000_B);
  CHECK(copied.totals.swap_in == 1'000_B);
  CHECK(copied.totals.recompute_count == 0);
  CHECK(copied.totals.makespan == nothing.totals.makespan);
  RunSpec spec{.pool = "ideal",
               .policy = "offmate",
               .capacity = capacity,
               .machine = tests::byte_per_nano(),
               .overhead_limit = {}};
  spec.machine.d2h.rate = spec.machine.h2d.rate = BytesPerSecond{1'000'000};
  const Result rerun = simulate(trace, spec);
  REQUIRE(rerun.outcome == Outcome::kOk);
  CHECK(rerun.totals.swap_out == 0_B);
  CHECK(rerun.totals.recompute_count == 1);
  CHECK(rerun.totals.makespan == nothing.totals.makespan + 1_us);
}

TEST_CASE("OffMate refuses a number of blocks outside its range") {
  CHECK_THROWS_WITH(tests::exact_run(tests::residual_trace({{}}), "offmate(stages=0)"),
                    "offmate: option 'stages' is '0'; expected a whole number from 1 to 100");
}

}  // namespace tidepool::offmate_test
