// Activation offloading of torch.compile in closed form: when copies to the host are waited for, and when copies back
// begin.
#include "simulator/result.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"
#include "tests/layer_trace.hpp"
#include "traces/error.hpp"

using namespace tidepool;
using tests::exact_run_that_ends_well;
using tests::layer_trace;

namespace {

/// Four layers of 100 ns each way. x_1 to x_4 are made at 100, 200, 300 and 400, and read last by the next layer (x_4
/// by the loss, of 10 ns). The loss goes back in 10 ns; layer 4 then reads x_3, layer 3 x_2, layer 2 x_1.
Trace four_layers(Bytes size, std::string_view name = "op") {
  return layer_trace(std::vector<tests::ChainLayer>(4, {name, 100_ns, 100_ns, size}), 10_B);
}

}  // namespace

TEST_CASE("with sink-wait the forward phase only waits for copies at its end") {
  // x_1 goes from 200 to 350, x_2 from 350 to 500, x_3 from 500 to 650; the backward phase would begin at 410.
  const Result sunk = exact_run_that_ends_well(four_layers(150_B), "compile-offload(least=2B,bandwidth=1GiB)");
  CHECK(sunk.totals.swap_out == 450_B);
  CHECK(sunk.totals.stall.d2h == 240_ns);
  // Each copy at once: three times 150.
  const Result at_once =
      exact_run_that_ends_well(four_layers(150_B), "compile-offload(least=2B,sink-wait=off,bandwidth=1GiB)");
  CHECK(at_once.totals.stall.d2h == 450_ns);
}

TEST_CASE("without prefetch the backward phase waits for every copy back") {
  const Result result = exact_run_that_ends_well(four_layers(150_B), "compile-offload(least=2B,prefetch=off)");
  CHECK(result.totals.swap_in == 450_B);
  CHECK(result.totals.stall.h2d == 450_ns);
}

TEST_CASE("with prefetch a copy back begins so early that the ops until its use take as long as the copy") {
  // At 1 GB/s as in the machine, a copy of 90 B takes 90 ns. From the end: x_1 joins the queue at layer 2, and is
  // placed before layer 3 (100 ns). There x_2 joins, and is placed before layer 4. x_3 joins there, and the loss of 10
  // ns is too short: x_3 starts after the loss, and layer 4 waits for all of it.
  const Result enough = exact_run_that_ends_well(four_layers(90_B), "compile-offload(least=2B,bandwidth=1000000000B)");
  CHECK(enough.totals.stall.h2d.count() == 90);
  // Twice as fast as the machine: x_1 needs 75 of layer 3's 100 and comes back 50 too late; so does x_2. Layer 4 waits
  // for 150.
  const Result late = exact_run_that_ends_well(four_layers(150_B), "compile-offload(least=2B,bandwidth=2000000000B)");
  CHECK(late.totals.stall.h2d.count() == 250);
  // Half as fast: x_1 needs 180, and joins first. After layer 3 it still needs 80, and x_2 waits behind it. Layer 4
  // places x_1; after the loss x_2 still needs 170. So x_3 starts after the loss, then x_2, then x_1. Only x_3 is late.
  const Result early = exact_run_that_ends_well(four_layers(90_B), "compile-offload(least=2B,bandwidth=500000000B)");
  CHECK(early.totals.stall.h2d.count() == 90);
}

TEST_CASE("only products, convolutions and attention count for prefetch where a step has them") {
  const std::string policy = "compile-offload(least=2B,prefetch=on,bandwidth=1000000000B)";
  // Only layer 2 is a product, so no op hides x_2 and x_3: both start after the loss, and so does x_1, after them.
  // Layer 4 waits for 90; from then on, each copy takes 90 and each layer 100.
  std::vector<tests::ChainLayer> layers(4, {"op", 100_ns, 100_ns, 90_B});
  layers[1].name = "aten::mm";
  CHECK(exact_run_that_ends_well(layer_trace(layers, 10_B), policy).totals.stall.h2d.count() == 90);
  // Layer 3 is a product of 50: x_1 needs more, so all three start after the loss again, x_1 from 190 to 280. Layer 2
  // would begin at 250.
  layers[1].name = "op";
  layers[2] = {"aten::mm", 100_ns, 50_ns, 90_B};
  CHECK(exact_run_that_ends_well(layer_trace(layers, 10_B), policy).totals.stall.h2d.count() == 120);
  // Layer 3 takes 100, so x_1 is placed before it. Layer 4, of 10, hides nothing of x_2: layer 3 waits from 110 to 190.
  layers[2].backward = 100_ns;
  layers[3].backward = 10_ns;
  CHECK(exact_run_that_ends_well(layer_trace(layers, 10_B), policy).totals.stall.h2d.count() == 170);
}

TEST_CASE("a bandwidth of 0 is refused") {
  CHECK_THROWS_WITH(exact_run_that_ends_well(four_layers(1_B), "compile-offload(bandwidth=0B)"),
                    "compile-offload: option 'bandwidth' is '0B'; expected at least 1MiB");
}
