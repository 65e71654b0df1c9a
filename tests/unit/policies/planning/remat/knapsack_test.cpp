// The knapsack behind a memory budget: its solvers compared with each other, and its effect on the peak.
#include "policies/planning/remat/knapsack.hpp"

#include <algorithm>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::knapsack_test {

namespace {

struct Taken {
  Bytes size;
  Nanos worth;
};

Taken sum_of(const std::vector<KnapsackItem>& items, const std::vector<bool>& taken) {
  Taken sum;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (taken[i]) sum.size += items[i].size, sum.worth += items[i].worth;
  return sum;
}

Nanos best_of_all(const std::vector<KnapsackItem>& items, Bytes limit) {
  Nanos best;
  for (std::uint32_t bits = 0; bits >> items.size() == 0; ++bits) {
    std::vector<bool> taken;
    for (std::size_t i = 0; i < items.size(); ++i) taken.push_back((bits >> i & 1) != 0);
    const Taken sum = sum_of(items, taken);
    if (sum.size <= limit) best = std::max(best, sum.worth);
  }
  return best;
}

Bytes peak_with_budget(const std::string& budget) {
  const RunSpec spec{.pool = "ideal", .policy = "budget-knapsack(budget=" + budget + ")", .machine = {}};
  const Result result = simulate(tests::chain_trace(16, 4), spec);
  CHECK(result.outcome == Outcome::kOk);
  return result.totals.peak;
}

}  // namespace

TEST_CASE(
    "the exact knapsack is the best of all subsets, and the table equals it if its units are exact, and greedy is no "
    "better") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    tests::Random random{seed};
    std::vector<KnapsackItem> items;
    for (int i = 0; i < 9; ++i)
      items.push_back({Bytes{static_cast<std::int64_t>(1 + random.below(30))},
                       Nanos{static_cast<std::int64_t>(1 + random.below(30))}});
    for (const Bytes limit : {0_B, 10_B, 50_B, 100_B, 500_B}) {  // those above 0 divide 10,000, so no size is rounded
      INFO("seed " << seed << " limit " << limit.count());
      const Nanos best = best_of_all(items, limit);
      CHECK(sum_of(items, knapsack_exactly(items, limit)).worth == best);
      CHECK(sum_of(items, knapsack_by_table(items, limit)).worth == best);
      CHECK(sum_of(items, knapsack_greedily(items, limit)).worth <= best);
      for (const auto& taken :
           {knapsack_exactly(items, limit), knapsack_by_table(items, limit), knapsack_greedily(items, limit)})
        CHECK(sum_of(items, taken).size <= limit);
    }
  }
}

TEST_CASE("the exact knapsack ends even if many items are nearly alike") {
  // Layers of a model: a few sizes in MiB, and times that differ a little. The table's unit is one byte, so it is
  // exact.
  tests::Random random{5};
  std::vector<KnapsackItem> items;
  for (int i = 0; i < 240; ++i) {
    const std::size_t kind = random.below(4);
    items.push_back({Bytes{static_cast<std::int64_t>(24 + 12 * kind)},
                     Nanos{static_cast<std::int64_t>(100'000 + 40'000 * kind + random.below(900))}});
  }
  const std::vector<bool> exact = knapsack_exactly(items, 10'000_B);
  CHECK(sum_of(items, exact).size <= 10'000_B);
  CHECK(sum_of(items, exact).worth == sum_of(items, knapsack_by_table(items, 10'000_B)).worth);
}

TEST_CASE("sizes between two units of the table are rounded up, so that it stays within its limit") {
  // Three items of 333,334 B take 1,000,002 B; two fit into a million.
  const std::vector<KnapsackItem> items(3, {333'334_B, 1_us});
  CHECK(sum_of(items, knapsack_by_table(items, Bytes{1'000'000})).worth == 2_us);
  CHECK(sum_of(items, knapsack_by_table(items, Bytes{1'000'002})).worth >= 2_us);
}

TEST_CASE("saving fewer bytes can take more memory: the budget is not the peak") {
  // If nothing is saved, the first backward op of a chain recomputes all 15 inputs, and they stay. If every fourth
  // input (the expensive ones) is saved, only the inputs between two saved ones are resident at once.
  CHECK(peak_with_budget("0") == peak_with_budget("1"));
  CHECK(peak_with_budget("0.2") < peak_with_budget("0"));
}

TEST_CASE("a budget outside 0 to 1 is refused") {
  const RunSpec spec{.pool = "ideal", .policy = "budget-knapsack(budget=2)", .machine = {}};
  CHECK_THROWS_WITH(simulate(tests::chain_trace(4), spec), "budget-knapsack: option 'budget' is '2'; expected 0 to 1");
}

}  // namespace tidepool::knapsack_test
