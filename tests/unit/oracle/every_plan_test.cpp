#include "tests/oracle/every_plan.hpp"

#include <fmt/format.h>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/tiny_case.hpp"

namespace tidepool::every_plan_test {

namespace {

/// Compares find_optimum with EveryPlan on steps of three ops: no plan beats the optimum, or the bound if find_optimum
/// has only a bound.
/// @param recipe_of  returns the step of a seed with at most the given number of ops
/// @return the number of the `tried` steps for which EveryPlan could try all plans
template <class RecipeOf>
int compare(std::uint64_t seeds, std::size_t most_states, bool addresses, int& tried, RecipeOf recipe_of) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const tests::TinyRecipe recipe = recipe_of(seed, 3);
    const Trace trace = recipe.trace();
    const bool swap = seed % 3 != 1, remat = seed % 3 != 2;
    const OptimumQuery query{trace, recipe.machine, recipe.capacity(), swap, remat, addresses, 100'000};
    if (query.machine.h2d.duplex_ppm != 1'000'000 && trace.data().streams.size() > 1) continue;  // not searched
    const Optimum found = find_optimum(query);
    ++tried;
    const Nanos long_time = baseline_time(trace, recipe.machine.launch) * 2 + 20_ms;
    tests::EveryPlan every{query, most_states};
    const std::optional<bool> beaten = every.beats(found.feasible || !found.exact ? found.makespan : long_time);
    INFO(fmt::format(
        "seed {}: the optimum says {}", seed,
        found.feasible || !found.exact ? fmt::format("{} ns", found.makespan.count()) : "that there is no plan"));
    if (!beaten) continue;
    ++compared;
    CHECK_FALSE(*beaten);
  }
  return compared;
}

}  // namespace

TEST_CASE("no sequence of actions beats the optimum of a step of three ops") {
  int tried = 0;
  const int compared = compare(tests::kOptimised ? 60 : 36, 400, false, tried, tests::tiny_recipe);
  INFO(compared << " of " << tried);
  CHECK(compared * 2 > tried);
}

TEST_CASE("no sequence of actions beats the optimum of a step of three ops on several streams") {
  int tried = 0;
  const int compared = compare(tests::kOptimised ? 60 : 20, 1'000, false, tried, tests::tiny_recipe_of_streams);
  INFO(compared << " of " << tried);
  CHECK(compared * 10 > tried);  // most steps have too many plans to try
}

TEST_CASE("no sequence of actions and places beats the optimum in places of a step of three ops") {
  int tried = 0;
  const int compared = compare(tests::kOptimised ? 30 : 10, 200, true, tried, tests::tiny_recipe);
  INFO(compared << " of " << tried);
  CHECK(compared * 4 > tried);
}

}  // namespace tidepool::every_plan_test
