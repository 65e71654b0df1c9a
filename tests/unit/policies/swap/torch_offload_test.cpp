// torchtune's activation offloading in closed form: the waits of the compute stream, and when swap-ins begin.
#include <string>

#include "simulator/result.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"
#include "tests/layer_trace.hpp"
#include "traces/base/error.hpp"

namespace tidepool::torch_offload_test {

using tests::exact_run_that_ends_well;
using tests::layer_trace;

namespace {

/// Four layers of 100 ns each way. x_1 to x_3 are saved before ops 1 to 3. x_0, which is from before the step, is saved
/// before op 0: it counts as a saved tensor, but stays on the device. x_4 is not saved.
Trace four_layers(Bytes size) {
  return layer_trace(std::vector<tests::ChainLayer>(4, {"op", 100_ns, 100_ns, size}), 10_B);
}

}  // namespace

TEST_CASE("the compute stream waits for the copy of the tensor that was saved `stash` tensors before") {
  // Copies of 150 ns start at 100 ns, one after the other. With a stash of one, op 2 waits for x_1 (from 200 to 250
  // ns), and op 3 for x_2, whose copy starts with op 2 (from 350 to 400 ns). With two, op 3 (at 300 ns) waits only for
  // x_1.
  for (const auto& [stash, size, stall] : {std::tuple{1, 150_B, 100_ns}, std::tuple{1, 100_B, 0_ns},
                                           std::tuple{1, 101_B, 2_ns}, std::tuple{2, 150_B, 0_ns}}) {
    const Result result =
        exact_run_that_ends_well(four_layers(size), "torch-offload(least=2B,stash=" + std::to_string(stash) + ")");
    CHECK(result.totals.stall.d2h == stall);
    CHECK(result.totals.swap_out == size * 3);
  }
}

TEST_CASE("the first node of backward reads its resident tensors in place, and swap-ins begin one node ahead") {
  // With a stash of one, x_3 is resident. The loss's backward begins after 410 ns of ops and 100 ns of waits, and takes
  // 10 ns; then layer 4 runs. x_2 is requested when the loss's backward begins, 110 ns before layer 3 (op 2), and takes
  // 150 ns: layer 3 waits for 40 ns. x_1 is requested after layer 4, and starts when x_2 is there. It takes 150 ns, and
  // layer 3 hides only 100 ns.
  const Result one = exact_run_that_ends_well(four_layers(150_B), "torch-offload(least=2B,stash=1)");
  CHECK(one.totals.swap_in == 300_B);
  CHECK(one.totals.stall.h2d == 90_ns);
  // With 100 B each, all copies are hidden. With a stash of two, x_2 leaves after layer 4, so its swap-in begins only
  // when layer 3 should run.
  CHECK(exact_run_that_ends_well(four_layers(100_B), "torch-offload(least=2B,stash=1)").totals.stall.h2d == 0_ns);
  const Result two = exact_run_that_ends_well(four_layers(100_B), "torch-offload(least=2B,stash=2)");
  CHECK(two.totals.swap_in == 200_B);
  CHECK(two.totals.stall.h2d == 100_ns);
}

TEST_CASE("small tensors stay, and so do tensors that the output projection or a later op saves") {
  const std::vector<tests::ChainLayer> layers{{"op", 100_ns, 100_ns, 10_B},
                                              {"op", 100_ns, 100_ns, 2000_B},
                                              {"aten::addmm", 100_ns, 100_ns, 3000_B},
                                              {"op", 100_ns, 100_ns, 1_B}};
  const Trace trace = layer_trace(layers, 10_B);
  // The projection saves x_2, and the op after it x_3.
  CHECK(exact_run_that_ends_well(trace, "torch-offload(stash=1)").totals.swap_out == 0_B);
  CHECK(exact_run_that_ends_well(trace, "torch-offload(stash=1,head=offload)").totals.swap_out == 5000_B);
  CHECK(exact_run_that_ends_well(trace, "torch-offload(stash=1,head=offload,least=10B)").totals.swap_out == 5010_B);
  CHECK(exact_run_that_ends_well(trace, "torch-offload(stash=1,head=offload,least=2001B)").totals.swap_out == 3000_B);
}

TEST_CASE("a stash outside its range is refused") {
  for (const std::string stash : {"0", "1.5"})
    CHECK_THROWS_WITH(exact_run_that_ends_well(four_layers(1_B), "torch-offload(stash=" + stash + ")"),
                      "torch-offload: option 'stash' is '" + stash + "'; expected a whole number from 1 to 1000000");
}

}  // namespace tidepool::torch_offload_test
