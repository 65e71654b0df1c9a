// The contract of tiny steps, for many more of them than in a run of the suite. TIDEPOOL_TINY_STEPS is the number of
// steps in each test (default 200000, and 50000 for steps of several streams), TIDEPOOL_TINY_FIRST the first seed
// (default 1). With these, a run can be divided into ranges of seeds, and an interrupted run can be continued. The step
// of one seed alone, in both tests:
//   TIDEPOOL_TINY_FIRST=760 TIDEPOOL_TINY_STEPS=1 build/tidepool_nightly "*tiny steps*"
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "tests/catch.hpp"
#include "tests/tiny_contract.hpp"

using namespace tidepool;

namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

/// @param recipe_of  returns the step of a seed with at most the given number of ops
template <class RecipeOf>
void check_steps(const char* name, std::uint64_t otherwise, RecipeOf recipe_of) {
  const std::uint64_t first = number_from("TIDEPOOL_TINY_FIRST", 1);
  const std::uint64_t last = first + number_from("TIDEPOOL_TINY_STEPS", otherwise);
  std::uint64_t solved = 0, found = 0;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    const tests::TinyRecipe recipe = recipe_of(seed, 4 + seed / 3 % 4);
    const tests::TinyCheck check = tests::check_tiny_step(recipe, seed);
    solved += check.solved;
    found += check.findings.size();
    for (const tests::TinyFinding& finding : check.findings)
      fmt::print(stderr, "seed {}: {}: {}\n", seed, finding.what, finding.text);
    if (seed % 10'000 == 0) fmt::print(stderr, "seeds to {}: {} solved, {} findings\n", seed, solved, found);
  }
  fmt::print("{} {} to {}: {} solved, {} findings\n", name, first, last - 1, solved, found);
  CHECK(found == 0);
}

}  // namespace

TEST_CASE(
    "on many tiny steps no bound is above the optimum, no result is below it, and every plan of an ok run executes") {
  check_steps("tiny steps", 200'000, [](auto seed, auto ops) { return tests::tiny_recipe(seed, ops); });
}

TEST_CASE(
    "on many tiny steps of several streams no bound is above the optimum, no result is below it, and every plan of an "
    "ok run executes") {
  check_steps("tiny steps of several streams", 50'000,
              [](auto seed, auto ops) { return tests::tiny_recipe_of_streams(seed, ops); });
}
