// DeepCompile's offloading of optimizer states in closed form: how many leave, when they have left, when they are back.
#include <string>
#include <string_view>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/base/error.hpp"
#include "traces/builder.hpp"

namespace tidepool::deepcompile_test {

namespace {

/// Six ops of 100 ns. Without the two optimizer states of 100 B, they need 100 and 300 B (forward), 350 and 200 B
/// (backward), and 50 and 50 B (one update for each state).
Trace two_states() {
  TraceBuilder build;
  const auto run = [&](std::string_view name, Phase phase, const std::vector<TraceBuilder::Touch>& uses) {
    build.run({.name = build.text(name), .phase = phase, .duration = 100_ns}, uses);
  };
  const BufferId mean = build.existing({.size = 100_B, .kind = BufferKind::kOptimizerState});
  const BufferId square = build.existing({.size = 100_B, .kind = BufferKind::kOptimizerState});
  const BufferId small = build.alloc({.size = 100_B});
  run("f0", Phase::kForward, {{small, Access::kWrite}});
  const BufferId large = build.alloc({.size = 200_B});
  run("f1", Phase::kForward, {{small}, {large, Access::kWrite}});
  const BufferId inner = build.alloc({.size = 50_B});
  run("b1", Phase::kBackward, {{large}, {inner, Access::kWrite}});
  build.free(large);
  const BufferId gradient = build.alloc({.size = 50_B});
  run("b0", Phase::kBackward, {{inner}, {small}, {gradient, Access::kWrite}});
  build.free(inner);
  build.free(small);
  run("update", Phase::kOptimizer, {{gradient}, {mean, Access::kReadWrite}});
  run("update", Phase::kOptimizer, {{gradient}, {square, Access::kReadWrite}});
  build.free(gradient);
  return build.finish();
}

/// A run of the repeated step, without addresses, at 1 ns per byte. A single step would begin with states on the host,
/// and would not copy them there.
Result steady_run(const std::string& policy, Bytes capacity) {
  const RunSpec spec{.pool = "ideal",
                     .policy = policy,
                     .capacity = capacity,
                     .machine = tests::byte_per_nano(),
                     .overhead_limit = {},
                     .steady = true,
                     .iterations = 16};
  return simulate(two_states(), spec, true);
}

Result steady_run_that_ends_well(const std::string& policy, Bytes capacity) {
  Result result = steady_run(policy, capacity);
  INFO(result.message);
  REQUIRE(result.outcome == Outcome::kOk);
  return result;
}

}  // namespace

TEST_CASE("optimizer states leave until the forward phase fits beside the others") {
  // f1 and both states need 500 B. One state leaves: it is swapped out while f0 runs, and swapped in when b0 has ended.
  const Result one = steady_run_that_ends_well("deepcompile(margin=0)", 450_B);
  CHECK(one.totals.swap_out == 100_B);
  CHECK(one.totals.swap_in == 100_B);
  CHECK(one.totals.stall.d2h == 0_ns);
  CHECK(one.totals.stall.h2d == 100_ns);
  // Both states have to leave, and f1 waits until the second copy ends at 200 ns. The first update waits for its state;
  // the second state is swapped in meanwhile.
  const Result both = steady_run_that_ends_well("deepcompile(margin=0)", 350_B);
  CHECK(both.totals.swap_out == 200_B);
  CHECK(both.totals.swap_in == 200_B);
  CHECK(both.totals.stall.d2h == 100_ns);
  CHECK(both.totals.stall.h2d == 100_ns);
}

TEST_CASE("a state comes back as soon as the rest of the backward phase leaves more memory than it needs") {
  // From b1 on, 350 B are needed, and 100 B for the state. There must be more than 450 B. The copy runs beside b0.
  const Result result = steady_run_that_ends_well("deepcompile(margin=0)", 451_B);
  CHECK(result.totals.swap_in == 100_B);
  CHECK(result.totals.stall.h2d == 0_ns);
}

TEST_CASE("DeepCompile ignores the peak of the backward phase when it chooses states to leave") {
  // The forward phase fits in 500 B; b1 needs 550 B.
  const Result result = steady_run("deepcompile(margin=0)", 500_B);
  CHECK(result.outcome == Outcome::kOutOfMemory);
  CHECK(steady_run_that_ends_well("deepcompile(margin=0)+lru-swap", 500_B).totals.swap_out > 0_B);
}

TEST_CASE("a fifth of the capacity is left free unless a margin is given") {
  CHECK(steady_run_that_ends_well("deepcompile", 626_B).totals.swap_out == 0_B);
  CHECK(steady_run_that_ends_well("deepcompile", 563_B).totals.swap_out == 100_B);
  CHECK_THROWS_WITH(steady_run("deepcompile(margin=1)", 500_B),
                    "deepcompile: option 'margin' is '1'; expected 0 to below 1");
}

}  // namespace tidepool::deepcompile_test
