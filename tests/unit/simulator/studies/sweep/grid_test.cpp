#include "simulator/studies/sweep/grid.hpp"

#include <set>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/registry.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/builder.hpp"

namespace tidepool::grid_test {

using Texts = std::vector<std::string>;

namespace {

/// A step with a peak of 1000 B.
Trace small_trace() {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1000_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  build.free(a);
  return build.finish();
}

std::string refusal(const GridText& text) {
  try {
    const Grid grid{text, small_trace()};
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a range of capacities has both ends and even steps: shares of up to 12 digits, or whole bytes") {
  CHECK(parse_capacities("0.3x..1.0x/8") == Texts{"0.3x", "0.4x", "0.5x", "0.6x", "0.7x", "0.8x", "0.9x", "1x"});
  CHECK(parse_capacities("1.0x..0.5x/2") == Texts{"1x", "0.5x"});
  CHECK(parse_capacities("1KiB..4KiB/4") == Texts{"1024B", "2048B", "3072B", "4096B"});
  CHECK(parse_capacities("0B..10B/4") == Texts{"0B", "3B", "6B", "10B"});
}

TEST_CASE("capacities are a list of sizes, fractions, ranges and words, and duplicates count once") {
  CHECK(parse_capacities("16GiB,none, 0.5x,machine,0.4x..0.6x/3,none") ==
        Texts{"16GiB", "none", "0.5x", "machine", "0.4x", "0.6x"});
}

TEST_CASE("seeds are whole numbers and ranges of them") {
  CHECK(parse_seeds("7") == std::vector<std::uint64_t>{7});
  CHECK(parse_seeds("1..3,2,9") == std::vector<std::uint64_t>{1, 2, 3, 9});
  CHECK(parse_seeds("5..5") == std::vector<std::uint64_t>{5});
  CHECK(parse_seeds("9223372036854775806..9223372036854775807").size() == 2);
}

TEST_CASE("a grid has every combination, and the seed varies fastest") {
  const Grid grid{{.pool = "best-fit,ideal",
                   .policy = "none,lru",
                   .capacity = "0.5x,none",
                   .machine = "g10-a100,a100-pcie4",
                   .seed = "1..2",
                   .assume = "simrd",
                   .overhead_limit = "2.0",
                   .iterations = "30"},
                  small_trace()};
  REQUIRE(grid.size() == 32);
  std::set<std::string> keys;
  const Trace trace = small_trace();
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const RunSpec spec = grid.at(i);
    CHECK(spec.seed == 1 + i % 2);
    CHECK(spec.capacity == (i / 2 % 2 == 0 ? 500_B : kNoLimit));
    CHECK(spec.pool == (i / 4 % 2 == 0 ? "best-fit" : "ideal"));
    CHECK(spec.policy == (i / 8 % 2 == 0 ? "none" : "lru"));
    CHECK(spec.machine.name == (i / 16 == 0 ? "g10-a100" : "a100-pcie4"));
    CHECK(spec.assume.name == "simrd");
    CHECK(spec.overhead_limit == 2.0);
    CHECK(spec.iterations == 30);
    CHECK(spec.steady);
    keys.insert(run_key(trace, spec));
  }
  CHECK(keys.size() == 32);
}

TEST_CASE("a value that is written in two ways is run once") {
  const Grid grid{{.pool = "best-fit,best-fit(),ideal", .capacity = "0.5x,50%,500B,none"}, small_trace()};
  CHECK(grid.size() == 2 * 2);
  CHECK(Grid{{.capacity = "50%..100%/3,0.5x,75%"}, small_trace()}.size() == 3);
}

TEST_CASE("without a capacity a run has the memory of its machine") {
  const Grid grid{{.machine = "g10-a100,a100-pcie4"}, small_trace()};
  REQUIRE(grid.size() == 2);
  CHECK(grid.at(0).capacity == 40_GiB);
  CHECK(grid.at(1).capacity == 80_GiB);
}

TEST_CASE("the word all stands for every pool and every policy") {
  const Grid grid{{.pool = "all", .policy = "all"}, small_trace()};
  CHECK(grid.size() == all_pools().size() * all_policies().size());
}

TEST_CASE("a comma may be part of the path of a machine file, in a list of machines too") {
  const ScratchFolder scratch;
  Machine machine = find_machine("v100-pcie3");
  machine.name = "mine";
  write_file(scratch.file("m,x.json"), machine_file(machine));
  const Grid grid{{.machine = scratch.file("m,x.json") + ",a100-pcie4"}, small_trace()};
  REQUIRE(grid.size() == 2);
  CHECK(grid.at(0).machine.name == "mine");
  CHECK(grid.at(1).machine.name == "a100-pcie4");
}

TEST_CASE("a wrong value is refused with the value and the expected form") {
  CHECK(refusal({.capacity = "1e-320x"}) == "'1e-320x' is less than one byte of the peak of 1000 B; expected more");
  CHECK(refusal({.capacity = "1xb"}) ==
        "--capacity: '1xb' is not a size; expected a number and B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, K, M, G or T, "
        "as in 512MiB; or a share of the peak, as in 0.5x; or none");
  for (const std::string share : {"-1x", "0%", "1000000x", "100000000%"})
    CHECK(refusal({.capacity = share}) ==
          "--capacity: '" + share +
              "' is not a share of the peak; expected a number and x or %, above 0x and below 1000000x, as in 0.5x");
  for (const std::string range : {"0.3x..1.0x", "0.3x..1.0x/1", "0.3x..1.0x/10001", "0.3x..1GiB/8", "0.3x..1.0x/8.5"})
    CHECK(refusal({.capacity = range}) == "--capacity: '" + range +
                                              "' is not a range; expected FIRST..LAST/COUNT, two shares or two sizes "
                                              "and a whole number from 2 to 10000, as in 0.3x..1.0x/8");
  CHECK(refusal({.capacity = "1GiB,,2GiB"}) ==
        "--capacity: '1GiB,,2GiB' is not a list; expected values with commas between them");
  for (const std::string seed : {"-1", "x", "1..x", "3..1", "1..10001"})
    CHECK(
        refusal({.seed = seed}) ==
        "--seed: '" + seed +
            "' is not a seed; expected a whole number from 0 on, or a range of at most 10000 of them, as in 7 or 1..3");
  CHECK(refusal({.seed = ""}) == "--seed: '' is not a list; expected values with commas between them");
  CHECK(refusal({.overhead_limit = "0.5"}) ==
        "--overhead-limit: '0.5' is not a multiple; expected a number of at least 1, as in 2.0, or none");
  CHECK(refusal({.iterations = "0"}) == "--iterations: '0' is not a number of iterations; expected 1 or more");
  CHECK(refusal({.assume = "simrdd"}) ==
        "no assumptions named 'simrdd', did you mean 'simrd'?; known: checkmate, moccasin, simrd");
  CHECK(refusal({.policy = "lru+te-offload(layers=0.5)"}) ==
        "te-offload: option 'layers' is '0.5'; expected a whole number from 0 to 1000000");
  CHECK(refusal({.policy = "lru+random+lru(x=1)"}) ==
        "'lru+random+lru(x=1)': policy 'lru' is in the chain twice; expected each policy once");
  CHECK(refusal({.pool = ""}) == "--pool: '' is not a list; expected values with commas between them");
}

}  // namespace tidepool::grid_test
