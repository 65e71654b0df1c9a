// Checkmate compared with all schedules of small graphs, and run by the engine on a chain.
#include "policies/planning/remat/checkmate.hpp"

#include <cmath>
#include <optional>

#include "policies/planning/remat/chain.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/keep_graph.hpp"

namespace tidepool::checkmate_test {

using tests::random_graph;

namespace {

/// The cost of every choice of kept values, completed by the runs that it needs and no others.
std::vector<KeepCost> all_costs(const KeepGraph& graph) {
  std::vector<std::pair<std::size_t, std::size_t>> choices;  // (t, i)
  std::vector<std::vector<bool>> kept(graph.nodes());
  for (std::size_t t = 0; t < graph.nodes(); ++t) {
    kept[t].resize(std::min(t, graph.repeatable()));
    for (std::size_t i = 0; i < kept[t].size(); ++i)
      if (t <= graph.last[i]) choices.emplace_back(t, i);
  }
  std::vector<KeepCost> costs;
  for (std::uint32_t bits = 0; bits >> choices.size() == 0; ++bits) {
    for (std::size_t c = 0; c < choices.size(); ++c) kept[choices[c].first][choices[c].second] = (bits >> c & 1) != 0;
    costs.push_back(cost_of(graph, complete(graph, kept)));
  }
  return costs;
}

}  // namespace

TEST_CASE("the integer program takes the least time of all schedules that fit, and its relaxation no more") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const KeepGraph graph = random_graph(seed, seed % 3 == 0 ? 4 : 3);
    const std::vector<KeepCost> costs = all_costs(graph);
    for (std::int64_t capacity = 4; capacity <= 20; capacity += 2) {
      INFO("seed " << seed << " capacity " << capacity);
      std::optional<Nanos> least;
      for (const KeepCost& cost : costs)
        if (cost.peak <= Bytes{capacity} && (!least || cost.again < *least)) least = cost.again;
      const KeepSolution exact = solve_exactly(graph, Bytes{capacity}, {});
      CHECK(exact.schedule.has_value() == least.has_value());
      const KeepSolution rounded = solve_by_rounding(graph, Bytes{capacity});
      if (!least || !exact.schedule) continue;
      CHECK(cost_of(graph, *exact.schedule).again == *least);
      CHECK(cost_of(graph, *exact.schedule).peak <= Bytes{capacity});
      CHECK(rounded.bound <= static_cast<double>(least->count()) + 1e-6);
      REQUIRE(rounded.schedule.has_value());
      const KeepCost cost = cost_of(graph, *rounded.schedule);
      CHECK((cost.peak > Bytes{capacity} || cost.again >= *least));
    }
  }
}

TEST_CASE("on a chain the integer program recomputes as many ops as binomial checkpointing") {
  for (const std::size_t slots : {2u, 3u, 4u, 6u, 7u}) {
    INFO("room for " << slots);
    // The step's input, the inputs of `slots` ops, and a gradient with the one made from it.
    const RunSpec spec{.pool = "ideal",
                       .policy = "checkmate(solve=ilp,stages=8)",
                       .capacity = 1000_B * static_cast<std::int64_t>(1 + slots + 2),
                       .machine = {}};
    const Result result = simulate(tests::chain_trace(8), spec);
    INFO(result.message);
    CHECK(result.outcome == Outcome::kOk);
    CHECK(result.totals.recompute_count == revolve_sweeps(8, slots - 1) - 7);
  }
}

TEST_CASE("the rounded relaxation of a chain fits, and the engine needs no more memory than it was given") {
  for (const std::size_t slots : {4u, 6u, 7u}) {
    INFO("room for " << slots);
    const RunSpec spec{.pool = "ideal",
                       .policy = "checkmate(stages=8)",
                       .capacity = 1000_B * static_cast<std::int64_t>(1 + slots + 2),
                       .machine = {}};
    const Result result = simulate(tests::chain_trace(8), spec);
    INFO(result.message);
    CHECK(result.outcome == Outcome::kOk);
    CHECK(result.totals.recompute_count >= revolve_sweeps(8, slots - 1) - 7);
  }
}

}  // namespace tidepool::checkmate_test
