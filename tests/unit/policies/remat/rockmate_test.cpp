// Rockmate's options of blocks compared with all schedules of small graphs, and the policy in closed form.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "policies/planning/remat/condense.hpp"
#include "policies/planning/remat/trace_chain.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/exact_run.hpp"
#include "tests/keep_graph.hpp"
#include "tests/residual_trace.hpp"

namespace tidepool::rockmate_test {

using tests::InnerTimes;

namespace {

/// The graph of random_graph() as a block: only the nodes after the repeatable ones are planned.
KeepGraph random_block(std::uint64_t seed) {
  KeepGraph graph = tests::random_graph(seed, 3);
  graph.first_planned = 3;
  return graph;
}

Bytes kept_for_backward(const KeepGraph& graph, const KeepSchedule& schedule) {
  Bytes sum;
  for (std::size_t i = 0; i < graph.repeatable(); ++i)
    if (schedule.kept[graph.first_planned][i]) sum += graph.size[i];
  return sum;
}

/// Every schedule of a block: all sets of values that its planned nodes keep.
std::vector<KeepSchedule> all_schedules(const KeepGraph& graph) {
  std::vector<std::vector<bool>> kept(graph.nodes());
  for (std::size_t t = 0; t < graph.nodes(); ++t) kept[t].assign(std::min(t, graph.repeatable()), true);
  std::vector<KeepSchedule> schedules;
  const std::size_t choices = (graph.nodes() - graph.first_planned) * graph.repeatable();
  for (std::uint32_t bits = 0; bits >> choices == 0; ++bits) {
    for (std::size_t c = 0; c < choices; ++c)
      kept[graph.first_planned + c / graph.repeatable()][c % graph.repeatable()] = (bits >> c & 1) != 0;
    schedules.push_back(complete(graph, kept));
  }
  return schedules;
}

const StagePrograms kPrograms{.groups = 6, .saves = 4, .peaks = 2, .nodes = 1000};

}  // namespace

TEST_CASE("a block's program takes the least time of all schedules that keep both budgets") {
  int solved = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    KeepGraph graph = random_block(seed);
    const std::vector<KeepSchedule> schedules = all_schedules(graph);
    for (const Bytes peak : {8_B, 11_B, 20_B})
      for (const Bytes kept : {0_B, 3_B, 7_B}) {
        INFO("seed " << seed << " peak " << peak.count() << " kept " << kept.count());
        std::optional<Nanos> least;
        for (const KeepSchedule& schedule : schedules) {
          const KeepCost cost = cost_of(graph, schedule);
          if (cost.peak > peak || kept_for_backward(graph, schedule) > kept) continue;
          if (!least || cost.again < *least) least = cost.again;
        }
        graph.most_kept = kept;
        const KeepSolution found = solve_exactly(graph, peak, {});
        REQUIRE(found.schedule.has_value() == least.has_value());
        ++(least ? solved : refused);
        if (!least) continue;
        CHECK(cost_of(graph, *found.schedule).again == *least);
        CHECK(cost_of(graph, *found.schedule).peak <= peak);
        CHECK(kept_for_backward(graph, *found.schedule) <= kept);
      }
  }
  CHECK(solved > 10);
  CHECK(refused > 3);
}

TEST_CASE("a block's schedules need no more memory than without reruns, and one keeps nothing if that is possible") {
  int keep_nothing = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const KeepGraph graph = random_block(seed);
    const std::vector<KeepSchedule> schedules = schedules_of(graph, kPrograms);
    const std::vector<KeepSchedule> all = all_schedules(graph);
    std::vector<std::vector<bool>> kept = all.back().kept;
    for (std::size_t t = 0; t < kept.size(); ++t)
      for (std::size_t i = 0; i < kept[t].size(); ++i) kept[t][i] = t <= graph.last[i];
    const Bytes most = cost_of(graph, complete(graph, kept)).peak;
    const auto keeps_nothing = [&](const KeepSchedule& schedule) {
      return kept_for_backward(graph, schedule) == 0_B && cost_of(graph, schedule).peak <= most;
    };
    INFO("seed " << seed);
    const bool can = std::any_of(all.begin(), all.end(), keeps_nothing);
    CHECK(std::any_of(schedules.begin(), schedules.end(), keeps_nothing) == can);
    keep_nothing += can ? 1 : 0;
    for (std::size_t i = 0; i < schedules.size(); ++i) {
      CHECK(cost_of(graph, schedules[i]).peak <= most);
      for (std::size_t j = 0; j < i; ++j) CHECK(schedules[i] != schedules[j]);
    }
  }
  CHECK(keep_nothing > 2);
}

TEST_CASE("the nodes of a stage are its backward ops, and its values are those that only this stage reads") {
  const Trace trace = tests::residual_trace({{}, {}, {}});
  const TraceChain chain = linearise(trace, 60);
  REQUIRE(chain.stages.size() == 4);  // the first op, and three blocks
  const CondensedTrace stage = condense_stage(trace, chain, 2, 6);
  REQUIRE(stage.graph.repeatable() == 2);  // a and b, not x and y
  CHECK(stage.graph.first_planned == 2);
  CHECK(stage.graph.size == std::vector{1'000_B, 1'000_B});
  CHECK(stage.graph.time == std::vector{10'000_ns, 1'000_ns});
  CHECK(stage.graph.again_inputs == std::vector<std::vector<std::uint32_t>>{{}, {0}});  // a is made from x, b from a
  // In backward, the block reads b first, then a, then x. The y of the next block is read before.
  REQUIRE(stage.graph.nodes() == 5);
  CHECK(stage.groups[2].behind - stage.groups[2].first == 1);
  CHECK(stage.graph.inputs[2] == std::vector<std::uint32_t>{1});
  CHECK(stage.graph.inputs[3] == std::vector<std::uint32_t>{0});
  CHECK(stage.graph.inputs[4].empty());
  for (std::size_t t = 2; t < 5; ++t) CHECK(stage.graph.during[t] == 20_B);  // two gradients
}

TEST_CASE("if one value exceeds the memory, Rockmate runs a cheap op again, and rotor a whole block") {
  // These are kept until the loss: x of block 0, and a, b and y of both blocks. The loss makes a gradient.
  const Trace trace = tests::residual_trace({{}, {}});
  REQUIRE(trace.ideal_peak() == 7'010_B);
  const Bytes capacity = trace.ideal_peak() - 1_B;
  const Result nothing = tests::exact_run_that_ends_well(trace, "none");
  const Result rockmate = tests::exact_run_that_ends_well(trace, "rockmate(slots=2000)", capacity);
  CHECK(rockmate.totals.recompute_count == 1);
  CHECK(rockmate.totals.makespan == nothing.totals.makespan + 1_us);
  const Result rotor = tests::exact_run_that_ends_well(trace, "rotor(slots=2000)", capacity);
  CHECK(rotor.totals.recompute_count == 2);
  CHECK(rotor.totals.makespan == nothing.totals.makespan + 11_us);
}

TEST_CASE("blocks that differ only in times share the schedules of the first one") {
  const auto keeps_of = [](InnerTimes third) {
    const Trace trace = tests::residual_trace({{}, {}, third, {}});
    TraceChain chain = linearise(trace, 60);
    add_options(trace, chain, kPrograms);
    std::vector<std::vector<bool>> keeps;
    for (const KeptOption& option : chain.stages[3].options) keeps.push_back(option.keeps);
    return keeps;
  };
  // By its own times, this block would drop a, which is cheap, and keep b, which is expensive.
  CHECK(keeps_of({1'000_ns, 10'000_ns}) == keeps_of({}));
}

TEST_CASE("a chain of blocks without inner values takes as long under Rockmate as under rotor") {
  const Trace trace = tests::chain_trace(16);
  const Bytes capacity = 1'000_B * (1 + 4 + 2);
  const Result rockmate = tests::exact_run_that_ends_well(trace, "rockmate", capacity);
  CHECK(rockmate.totals == tests::exact_run_that_ends_well(trace, "rotor", capacity).totals);
  CHECK(rockmate.totals.recompute_count > 0);
}

TEST_CASE("Rockmate refuses a number of budgets outside its range") {
  const Trace trace = tests::chain_trace(4);
  CHECK_THROWS_WITH(tests::exact_run(trace, "rockmate(saves=1)"),
                    "rockmate: option 'saves' is '1'; expected a whole number from 2 to 100");
  CHECK_THROWS_WITH(tests::exact_run(trace, "rockmate(peaks=0)"),
                    "rockmate: option 'peaks' is '0'; expected a whole number from 1 to 100");
}

}  // namespace tidepool::rockmate_test
