// Static planners for chains, run by the simulator: a step has as many recomputations as the papers say.
#include <fmt/format.h>

#include "policies/planning/remat/chain.hpp"
#include "policies/planning/remat/trace_chain.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "traces/base/error.hpp"

namespace tidepool::chain_policy_test {

namespace {

RunSpec under(const std::string& policy, Bytes capacity) {
  return {.pool = "ideal", .policy = policy, .capacity = capacity, .machine = {}, .overhead_limit = {}};
}

/// Bytes of the step's input, of the inputs of `slots` stages, and of a gradient with the one computed from it.
Bytes room_for(std::size_t slots) { return 1000_B * static_cast<std::int64_t>(1 + slots + 2); }

}  // namespace

TEST_CASE("a chain of ops is divided after each op, and the stages have the sizes and times of their ops") {
  const TraceChain chain = linearise(tests::chain_trace(5), 60);
  REQUIRE(chain.stages.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    INFO(i);
    const Stage& stage = chain.chain.stages[i];
    CHECK(chain.stages[i].first == i);
    CHECK(stage.output == (i < 4 ? 1000_B : 0_B));
    CHECK(stage.first == (i < 4 ? 1_us : 2_us));             // the last stage includes the loss
    CHECK(stage.again == (i < 4 ? 1_us : 0_us));             // the last stage has no output
    CHECK(stage.options[0].alone == (i < 4 ? 0_us : 2_us));  // only the next stage reads x
    CHECK(stage.options[0].backward == 1_us);
    CHECK(stage.options[0].saved == 1000_B);  // the last stage saves the first gradient
    CHECK(stage.gradient == (i < 4 ? 1000_B : 0_B));
  }
}

TEST_CASE(
    "ops that a branch skips and the op that reads it are one stage, and a small version that all ops read joins no "
    "ops") {
  // x1 -> x2 -> x3 -> x4 = x3 + x1 -> x5, all read by the backward phase; a mask of 1 byte is read by every op.
  TraceBuilder build;
  const BufferId mask = build.alloc({.size = 1_B});
  build.run({.duration = 1_us}, {{mask, Access::kWrite}});
  std::vector<BufferId> x;
  for (int i = 1; i <= 5; ++i) {
    std::vector<TraceBuilder::Touch> touches{{mask}};
    if (i > 1) touches.push_back({x.back()});
    if (i == 4) touches.push_back({x[0]});
    x.push_back(build.alloc({.size = 1000_B}));
    touches.push_back({x.back(), Access::kWrite});
    build.run({.duration = 1_us}, touches);
  }
  for (std::size_t i = 5; i-- > 0;) build.run({.phase = Phase::kBackward, .duration = 1_us}, {{x[i]}, {mask}});
  const Trace trace = build.finish();
  const TraceChain chain = linearise(trace, 60);
  std::vector<std::uint32_t> starts;
  for (const TraceStage& stage : chain.stages) starts.push_back(stage.first);
  CHECK(starts == std::vector<std::uint32_t>{0, 2, 5});
}

TEST_CASE("if few stages are allowed, neighbours are merged") {
  const TraceChain chain = linearise(tests::chain_trace(9), 3);
  REQUIRE(chain.stages.size() == 3);
  CHECK(chain.stages.back().behind == 10);
  Nanos forward;
  for (const Stage& stage : chain.chain.stages) forward += stage.first;
  CHECK(forward == 10_us);
}

TEST_CASE("revolve recomputes as many ops as binomial checkpointing") {
  for (const std::size_t length : {16u, 32u, 64u})
    for (const std::size_t slots : {2u, 3u, 4u, 6u, 8u}) {
      INFO(length << " ops, room for " << slots);
      const Result result = simulate(tests::chain_trace(length), under("revolve(stages=64)", room_for(slots)));
      INFO(result.message);
      CHECK(result.outcome == Outcome::kOk);
      CHECK(result.totals.recompute_count == revolve_sweeps(length, slots - 1) - static_cast<std::int64_t>(length - 1));
    }
}

TEST_CASE("rotor recomputes no more ops than binomial checkpointing, and none if all outputs fit") {
  for (const std::size_t slots : {2u, 3u, 4u, 6u, 8u, 14u, 15u}) {
    INFO("room for " << slots);
    const Result result = simulate(tests::chain_trace(16), under("rotor", room_for(slots)));
    CHECK(result.outcome == Outcome::kOk);
    CHECK(result.totals.recompute_count <= revolve_sweeps(16, slots - 1) - 15);
    if (slots == 15) CHECK(result.totals.recompute_count == 0);
  }
}

TEST_CASE("chen keeps every fourth of 16 inputs and recomputes three segments") {
  const Result result = simulate(tests::chain_trace(16), under("chen(scheme=sqrt)", room_for(6)));
  CHECK(result.outcome == Outcome::kOk);
  CHECK(result.totals.recompute_count == 9);  // three ops in each segment except the last
}

TEST_CASE("a number of stages outside its range is refused") {
  CHECK_THROWS_WITH(simulate(tests::chain_trace(4), under("rotor(stages=0)", 1_GiB)),
                    "rotor: option 'stages' is '0'; expected a whole number from 1 to 200");
}

}  // namespace tidepool::chain_policy_test
