// Transformer Engine's activation offloading by layers in closed form: its waits, and when its swap-ins begin.
#include "tests/blocks_trace.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"
#include "traces/base/error.hpp"

namespace tidepool::te_offload_test {

using tests::blocks_of_two;
using tests::exact_run_that_ends_well;

// Four blocks, 0 to 3, of 100 ns. Block i saves its input x_i (10 B) at 100 i + 60 ns, and y_i (100 B) at 100 i + 100
// ns.

TEST_CASE(
    "a later layer waits until an offloaded layer has left, if otherwise more layers than allowed would be resident") {
  // Two of four layers are offloaded. The copy of y_0 runs from 100 to 200 ns, and then block 2 begins. The copies of
  // x_1, which block 1 saves at 160 ns, and y_1 run until 310 ns, but block 3 could begin at 300 ns.
  const Result result = exact_run_that_ends_well(blocks_of_two(4), "te-offload(layers=2,least=1B)");
  CHECK(result.totals.swap_out == 210_B);
  CHECK(result.totals.stall.d2h == 10_ns);
  // If small tensors stay, x_1 is not copied, and the copy of y_1 ends at 300 ns.
  const Result large = exact_run_that_ends_well(blocks_of_two(4), "te-offload(layers=2,least=100B)");
  CHECK(large.totals.swap_out == 200_B);
  CHECK(large.totals.stall.d2h == 0_ns);
}

TEST_CASE("a layer that left after layer L is swapped in when the backward of L begins") {
  // Block 1 (110 B) is requested when block 2's backward (100 ns) begins. Its own backward waits 10 ns for it. Block 0
  // is requested at that time, and its copy is hidden.
  const Result result = exact_run_that_ends_well(blocks_of_two(4), "te-offload(layers=2,least=1B)");
  CHECK(result.totals.swap_in == 210_B);
  CHECK(result.totals.stall.h2d == 10_ns);
}

TEST_CASE("if all layers but the last are offloaded, each is swapped in at its own backward") {
  // This is the default. In forward, block i + 1 waits for the whole copy of y_i. In backward, y_i is requested when
  // block i should begin, so block i waits for the whole swap-in.
  const Result result = exact_run_that_ends_well(blocks_of_two(4), "te-offload(least=100B)");
  CHECK(result.totals.swap_out == 300_B);
  CHECK(result.totals.stall.d2h == 300_ns);
  CHECK(result.totals.stall.h2d == 300_ns);
}

TEST_CASE("a number of layers outside its range is refused") {
  CHECK_THROWS_WITH(exact_run_that_ends_well(blocks_of_two(2), "te-offload(layers=1.5)"),
                    "te-offload: option 'layers' is '1.5'; expected a whole number from 0 to 1000000");
}

}  // namespace tidepool::te_offload_test
