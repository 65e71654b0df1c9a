// GeePS in closed form: the buffers that are pinned beside two accesses, and the cost of staging the others.
#include <tuple>

#include "simulator/result.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"
#include "tests/layer_trace.hpp"

namespace tidepool::geeps_test {

using tests::layer_trace;

namespace {

Result under(const Trace& trace, Bytes capacity) { return tests::exact_run_that_ends_well(trace, "geeps", capacity); }

Trace equal_layers(std::size_t count, Bytes size) {
  return layer_trace(std::vector<tests::ChainLayer>(count, {"op", 100_ns, 100_ns, size}), size);
}

}  // namespace

TEST_CASE(
    "buffers that fit beside two of the largest accesses are pinned, beginning with those of the largest access") {
  // x_1 to x_5 (100 B each) and the loss are kept. x_0 and two gradients are live besides: 300 B. A layer makes one x
  // and reads one, so an access takes p = 200 B. With 700 B, nothing is left beside 2 p. With 1000 B, x_1 to x_3 are
  // pinned; then no access needs two buffers any more, p = 100 B, and the others fit too.
  const Trace trace = equal_layers(6, 100_B);
  for (const auto& [capacity, staged] : {std::pair{710_B, 5}, std::pair{799_B, 5}, std::pair{810_B, 4},
                                         std::pair{910_B, 3}, std::pair{1010_B, 0}, std::pair{1300_B, 0}}) {
    INFO(to_text(capacity));
    const Result result = under(trace, capacity);
    CHECK(result.totals.swap_out == 100_B * staged);
    CHECK(result.totals.swap_in == 100_B * staged);
  }
}

TEST_CASE("a staged buffer is swapped in one access ahead") {
  // x_2 is swapped in beside the loss (10 ns), or stays if it has not left by then; x_1 is swapped in beside layer 3.
  for (const auto& [size, back, stall] :
       {std::tuple{100_B, 2, 90_ns}, std::tuple{110_B, 1, 10_ns}, std::tuple{10_B, 2, 0_ns}}) {
    const Trace trace = equal_layers(3, size);
    const Result result = under(trace, size * 6 - 1_B);  // other buffers take half; one byte more would pin x_1
    CHECK(result.totals.swap_out == size * 2);
    CHECK(result.totals.swap_in == size * back);
    CHECK(result.totals.stall.h2d.count() == stall.count());
  }
}

}  // namespace tidepool::geeps_test
