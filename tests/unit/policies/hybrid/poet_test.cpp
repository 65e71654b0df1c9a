// POET's integer program compared with all schedules of small graphs, and run by the engine on a chain.
#include <cmath>
#include <optional>

#include "policies/planning/remat/chain.hpp"
#include "policies/planning/remat/checkmate.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/exact_run.hpp"
#include "tests/keep_graph.hpp"

namespace tidepool::poet_test {

namespace {

/// The graph of random_graph() with prices of copies; some copies are cheaper than reruns.
KeepGraph paged_graph(std::uint64_t seed) {
  KeepGraph graph = tests::random_graph(seed, 3);
  tests::Random random{seed + 100};
  for (std::size_t i = 0; i < graph.repeatable(); ++i) {
    graph.page_out.push_back(Nanos{static_cast<std::int64_t>(random.below(4))});
    graph.page_in.push_back(Nanos{static_cast<std::int64_t>(1 + random.below(4))});
  }
  return graph;
}

/// The cost of every schedule: all sets of kept values, each with all choices between a copy and a rerun.
std::vector<KeepCost> all_costs(const KeepGraph& graph) {
  std::vector<std::pair<std::size_t, std::size_t>> choices;  // (t, i)
  std::vector<std::vector<bool>> kept(graph.nodes());
  for (std::size_t t = 0; t < graph.nodes(); ++t) {
    kept[t].resize(std::min(t, graph.repeatable()));
    for (std::size_t i = 0; i < kept[t].size(); ++i)
      if (t <= graph.last[i]) choices.emplace_back(t, i);
  }
  std::vector<std::vector<bool>> paged_in = kept;
  const std::size_t count = choices.size();
  std::vector<KeepCost> costs;
  for (std::uint32_t bits = 0; bits >> 2 * count == 0; ++bits) {
    for (std::size_t c = 0; c < count; ++c) {
      const auto [t, i] = choices[c];
      kept[t][i] = (bits >> c & 1) != 0;
      paged_in[t][i] = (bits >> (count + c) & 1) != 0;
    }
    costs.push_back(cost_of(graph, complete(graph, kept, paged_in)));
  }
  return costs;
}

}  // namespace

TEST_CASE("POET's integer program takes the least price of all schedules that fit") {
  int paged = 0, rerun = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const KeepGraph graph = paged_graph(seed);
    const std::vector<KeepCost> costs = all_costs(graph);
    for (std::int64_t capacity = 5; capacity <= 17; capacity += 3) {
      INFO("seed " << seed << " capacity " << capacity);
      std::optional<Nanos> least;
      for (const KeepCost& cost : costs)
        if (cost.peak <= Bytes{capacity} && (!least || cost.price() < *least)) least = cost.price();
      const KeepSolution exact = solve_exactly(graph, Bytes{capacity}, {});
      REQUIRE(exact.schedule.has_value() == least.has_value());
      if (!least) continue;
      const KeepCost cost = cost_of(graph, *exact.schedule);
      CHECK(cost.price() == *least);
      CHECK(cost.peak <= Bytes{capacity});
      paged += cost.paged > 0_ns ? 1 : 0;
      rerun += cost.again > 0_ns ? 1 : 0;
      CHECK(solve_by_rounding(graph, Bytes{capacity}).bound <= static_cast<double>(least->count()) + 1e-6);
    }
  }
  CHECK(paged > 0);
  CHECK(rerun > 0);
}

TEST_CASE("if the time of reruns is limited, POET uses copies instead") {
  KeepGraph graph = paged_graph(1);
  for (Nanos& time : graph.page_in) time = 1'000_ns;  // reruns are cheaper
  std::optional<Bytes> tight;                         // the largest capacity that needs reruns
  for (std::int64_t capacity = 17; capacity > 0 && !tight; --capacity) {
    const KeepSolution free = solve_exactly(graph, Bytes{capacity}, {});
    if (free.schedule && cost_of(graph, *free.schedule).again > 0_ns) tight = Bytes{capacity};
  }
  REQUIRE(tight);
  const KeepSolution free = solve_exactly(graph, *tight, {});
  graph.most_again = cost_of(graph, *free.schedule).again - 1_ns;
  const KeepSolution limited = solve_exactly(graph, *tight, {});
  REQUIRE(limited.schedule);
  CHECK(cost_of(graph, *limited.schedule).again <= *graph.most_again);
  CHECK(cost_of(graph, *limited.schedule).paged > 0_ns);
}

TEST_CASE("if the time of reruns is limited, some roundings of POET's relaxation keep the limit, and these fit") {
  int kept = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    KeepGraph graph = paged_graph(seed);
    for (std::int64_t capacity = 17; capacity > 8; --capacity) {
      graph.most_again.reset();
      const KeepSolution free = solve_by_rounding(graph, Bytes{capacity});
      if (!free.schedule || cost_of(graph, *free.schedule).peak > Bytes{capacity}) continue;
      const KeepCost cost = cost_of(graph, *free.schedule);
      if (cost.again == 0_ns) continue;
      graph.most_again = cost.again - 1_ns;
      const KeepSolution limited = solve_by_rounding(graph, Bytes{capacity});
      if (!limited.schedule || cost_of(graph, *limited.schedule).again > *graph.most_again) continue;
      ++kept;
      CHECK(cost_of(graph, *limited.schedule).peak <= Bytes{capacity});
    }
  }
  CHECK(kept > 10);
}

TEST_CASE("POET refuses prices and limits that are not numbers from 0 to a million") {
  const Trace trace = tests::chain_trace(8);
  const auto run = [&](const char* policy) {
    return simulate(trace, {.pool = "ideal", .policy = policy, .capacity = trace.ideal_peak() - 1_B});
  };
  CHECK_THROWS_WITH(run("poet(paging=-1)"), "poet: option 'paging' is '-1'; expected 0 to 1000000");
  CHECK_THROWS_WITH(run("poet(reruns=1e30)"), "poet: option 'reruns' is '1e30'; expected 0 to 1000000");
}

TEST_CASE("if copies are expensive, POET recomputes a chain as Checkmate does, and if they are cheap, it only copies") {
  // Memory for the step's input, the inputs of four ops, a gradient, and the gradient made from it.
  const Trace trace = tests::chain_trace(8);
  const Bytes capacity = 1000_B * (1 + 4 + 2);
  const Result dear = tests::exact_run_that_ends_well(trace, "poet(solve=ilp,stages=8,paging=1000)", capacity);
  CHECK(dear.totals.swap_out == 0_B);
  CHECK(dear.totals.recompute_count == revolve_sweeps(8, 3) - 7);
  const Result cheap = tests::exact_run_that_ends_well(trace, "poet(solve=ilp,stages=8,paging=0.0001)", capacity);
  CHECK(cheap.totals.recompute_count == 0);
  CHECK(cheap.totals.swap_in == cheap.totals.swap_out);
  CHECK(cheap.totals.swap_in > 0_B);
}

TEST_CASE("the rounded relaxation of POET fits a chain, and the engine needs no more memory than it was given") {
  const Trace trace = tests::chain_trace(8);
  for (const char* policy : {"poet(paging=1000)", "poet(paging=1)", "poet(paging=0.0001)"})
    CHECK(tests::exact_run(trace, policy, 1000_B * (1 + 4 + 2)).outcome == Outcome::kOk);
}

}  // namespace tidepool::poet_test
