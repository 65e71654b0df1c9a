// The layer window in closed form: windows that hide copies, and windows that do not fit.
#include <fmt/format.h>

#include "simulator/result.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"
#include "tests/layer_trace.hpp"
#include "traces/base/error.hpp"

namespace tidepool::layer_window_test {

using tests::exact_run;
using tests::layer_trace;

namespace {

Trace equal_layers(std::size_t count, Bytes size) {
  return layer_trace(std::vector<tests::ChainLayer>(count, {"op", 100_ns, 100_ns, size}), size);
}

}  // namespace

TEST_CASE("with a window of one layer, each copy runs beside one layer") {
  // With three layers and the loss, only x_1 can be swapped out: during layer 3, before the loss. It is swapped in
  // during layer 3's backward.
  for (const auto& [size, stall] : {std::pair{100_B, 0_ns}, std::pair{101_B, 1_ns}, std::pair{250_B, 150_ns}}) {
    const Result result = exact_run(equal_layers(3, size), "layer-window(window=1)");
    CHECK(result.totals.swap_out == size);
    CHECK(result.totals.stall.d2h == stall);
    CHECK(result.totals.stall.h2d == stall);
  }
}

TEST_CASE("the window is the smallest one that hides all copies") {
  // Eight layers of 100 ns. If x_1 to x_k leave, the window is m = 7 - k. Swap-outs of s > 100 ns follow each other
  // from 200 ns on. The last one ends at 200 + k s, and must have ended when layer k + m + 2 = 9, the loss, begins, at
  // 800 ns.
  for (const auto& [size, leaving] : {std::pair{100_B, 6}, std::pair{101_B, 5}, std::pair{120_B, 5},
                                      std::pair{121_B, 4}, std::pair{150_B, 4}, std::pair{151_B, 3}}) {
    INFO(to_text(size));
    const Trace trace = equal_layers(8, size);
    const Result result = exact_run(trace, "layer-window", trace.ideal_peak() - 1_B);
    REQUIRE(result.outcome == Outcome::kOk);
    CHECK(result.totals.swap_out == size * leaving);
    CHECK(result.totals.swap_in == size * leaving);
    CHECK(result.totals.stall.compute == 0_ns);
  }
}

TEST_CASE("if no window that hides copies fits, the largest that fits is used, and if all fits, nothing is copied") {
  const Trace trace = equal_layers(8, 150_B);
  CHECK(exact_run(trace, "layer-window", trace.ideal_peak()).totals.swap_out == 0_B);
  int smaller = 0, none = 0;
  for (Bytes capacity = 450_B; capacity < trace.ideal_peak(); capacity += 50_B) {
    INFO(to_text(capacity));
    const Result result = exact_run(trace, "layer-window", capacity);
    int window = 3;  // the smallest that hides copies, by the formula above
    while (window > 0 &&
           exact_run(trace, fmt::format("layer-window(window={})", window), capacity).outcome != Outcome::kOk)
      --window;
    CHECK((result.outcome == Outcome::kOk) == (window > 0));
    if (window > 0)
      CHECK(result.totals == exact_run(trace, fmt::format("layer-window(window={})", window), capacity).totals);
    smaller += window == 1 || window == 2, none += window == 0;
  }
  CHECK(smaller > 0);
  CHECK(none > 0);
}

TEST_CASE("a window outside its range is refused") {
  for (const std::string window : {"-1", "0.5"})
    CHECK_THROWS_WITH(exact_run(equal_layers(3, 1_B), "layer-window(window=" + window + ")"),
                      "layer-window: option 'window' is '" + window + "'; expected a whole number from 0 to 1000000");
}

}  // namespace tidepool::layer_window_test
