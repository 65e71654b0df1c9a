// Activation offloading of torch.compile in closed form: waits for swap-outs, and when swap-ins begin.
#include "simulator/result.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"
#include "tests/layer_trace.hpp"
#include "traces/base/error.hpp"

namespace tidepool::compile_offload_test {

using tests::exact_run_that_ends_well;
using tests::layer_trace;

namespace {

/// Four layers of 100 ns forward and 100 ns backward. x_1 to x_4 are made at 100, 200, 300 and 400 ns. In forward, the
/// next layer is the last to read x_1 to x_3; the loss (10 ns forward, 10 ns backward) reads x_4. In backward, layer 4
/// reads x_3, layer 3 x_2, layer 2 x_1.
Trace four_layers(Bytes size, std::string_view name = "op") {
  return layer_trace(std::vector<tests::ChainLayer>(4, {name, 100_ns, 100_ns, size}), 10_B);
}

}  // namespace

TEST_CASE("with sink-wait the forward phase only waits for copies at its end") {
  // In ns: x_1 is copied from 200 to 350, x_2 to 500, x_3 to 650. Without waiting, the backward phase would begin at
  // 410.
  const Result sunk = exact_run_that_ends_well(four_layers(150_B), "compile-offload(least=2B,bandwidth=1GiB)");
  CHECK(sunk.totals.swap_out == 450_B);
  CHECK(sunk.totals.stall.d2h == 240_ns);
  // Each copy is waited for at once: three times 150 ns.
  const Result at_once =
      exact_run_that_ends_well(four_layers(150_B), "compile-offload(least=2B,sink-wait=off,bandwidth=1GiB)");
  CHECK(at_once.totals.stall.d2h == 450_ns);
}

TEST_CASE("without prefetch the backward phase waits for every swap-in") {
  const Result result = exact_run_that_ends_well(four_layers(150_B), "compile-offload(least=2B,prefetch=off)");
  CHECK(result.totals.swap_in == 450_B);
  CHECK(result.totals.stall.h2d == 450_ns);
}

TEST_CASE("with prefetch a swap-in begins so early that the ops before its use take as long as the copy") {
  // The policy assumes 1 GB/s, as the machine has, so a copy of 90 B takes 90 ns. From the end of the step: x_1 joins
  // the queue at layer 2 and is placed before layer 3 (100 ns). x_2 joins there and is placed before layer 4. x_3 joins
  // there; the loss (10 ns) is too short for it. So x_3 starts after the loss, and layer 4 waits for all of its 90 ns.
  const Result enough = exact_run_that_ends_well(four_layers(90_B), "compile-offload(least=2B,bandwidth=1000000000B)");
  CHECK(enough.totals.stall.h2d.count() == 90);
  // The policy assumes twice the machine's rate, so 75 ns for a copy of 150 ns. x_1 is placed before layer 3 (100 ns),
  // so it is 50 ns late; so is x_2. Layer 4 waits for 150 ns.
  const Result late = exact_run_that_ends_well(four_layers(150_B), "compile-offload(least=2B,bandwidth=2000000000B)");
  CHECK(late.totals.stall.h2d.count() == 250);
  // The policy assumes half the machine's rate: x_1 needs 180 ns and joins first. After layer 3 it still needs 80 ns,
  // and x_2 waits behind it. x_1 is placed before layer 4; after the loss x_2 still needs 170 ns. So x_3 starts after
  // the loss, then x_2, then x_1. Only x_3 is late.
  const Result early = exact_run_that_ends_well(four_layers(90_B), "compile-offload(least=2B,bandwidth=500000000B)");
  CHECK(early.totals.stall.h2d.count() == 90);
}

TEST_CASE("if a step has products, convolutions or attention, only these count for prefetch") {
  const std::string policy = "compile-offload(least=2B,prefetch=on,bandwidth=1000000000B)";
  // Only layer 2 is a product, so no op hides x_2 and x_3: both start after the loss, and so does x_1, after them.
  // Layer 4 waits for 90 ns; from then on, each copy takes 90 ns and each layer 100 ns.
  std::vector<tests::ChainLayer> layers(4, {"op", 100_ns, 100_ns, 90_B});
  layers[1].name = "aten::mm";
  CHECK(exact_run_that_ends_well(layer_trace(layers, 10_B), policy).totals.stall.h2d.count() == 90);
  // Layer 3 is a product of 50 ns, too short for x_1, so all three start after the loss again, x_1 from 190 to 280 ns.
  // Without waiting, layer 2 would begin at 250 ns.
  layers[1].name = "op";
  layers[2] = {"aten::mm", 100_ns, 50_ns, 90_B};
  CHECK(exact_run_that_ends_well(layer_trace(layers, 10_B), policy).totals.stall.h2d.count() == 120);
  // Layer 3 takes 100 ns, so x_1 is placed before it. Layer 4 (10 ns) is no product, so x_2 starts after the loss,
  // behind x_3. It is copied beside layer 4, and layer 3 waits for the other 80 ns.
  layers[2].backward = 100_ns;
  layers[3].backward = 10_ns;
  CHECK(exact_run_that_ends_well(layer_trace(layers, 10_B), policy).totals.stall.h2d.count() == 170);
}

TEST_CASE("a bandwidth of 0 is refused") {
  CHECK_THROWS_WITH(exact_run_that_ends_well(four_layers(1_B), "compile-offload(bandwidth=0B)"),
                    "compile-offload: option 'bandwidth' is '0B'; expected at least 1MiB");
}

}  // namespace tidepool::compile_offload_test
