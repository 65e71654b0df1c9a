// vDNN in closed form: the inputs that are swapped, and the waits at the ends of layers.
#include <fmt/format.h>

#include "simulator/result.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"
#include "tests/layer_trace.hpp"

namespace tidepool::vdnn_test {

using tests::ChainLayer;
using tests::exact_run;
using tests::layer_trace;

namespace {

/// The op before which `buffer` is first swapped in.
std::uint32_t asked_before(const Trace& trace, const Result& result, std::size_t buffer) {
  for (const Action& action : result.realised.actions)
    if (action.verb == Verb::kSwapIn && trace.version(VersionId{action.subject}).buffer == BufferId{buffer})
      return action.before.value();
  return ~0u;
}

}  // namespace

TEST_CASE("the next layer waits until a layer's input has left, for max(0, s / B - t)") {
  // x_1 (s_1 bytes) leaves beside layer 2 (t_2), and x_2 (s_2) beside layer 3 (t_3). x_1 is swapped in during layer 3's
  // backward, x_2 during the loss's backward (10 ns).
  for (const auto& [s1, t2, s2, t3, b3] : {std::tuple{100, 100, 50, 50, 100}, std::tuple{101, 100, 50, 50, 100},
                                           std::tuple{100, 100, 50, 49, 100}, std::tuple{300, 100, 400, 50, 299}}) {
    INFO(fmt::format("{} B beside {} ns, {} B beside {} ns", s1, t2, s2, t3));
    const Trace trace = layer_trace({{"conv", 70_ns, 70_ns, Bytes{s1}},
                                     {"conv", Nanos{t2}, 70_ns, Bytes{s2}},
                                     {"conv", Nanos{t3}, Nanos{b3}, 40_B}},
                                    60_B);
    const Result result = exact_run(trace, "vdnn(which=all)");
    REQUIRE(result.outcome == Outcome::kOk);
    CHECK(result.totals.swap_out == Bytes{s1 + s2});
    CHECK(result.totals.stall.d2h == Nanos{std::max(0, s1 - t2) + std::max(0, s2 - t3)});
    CHECK(result.totals.stall.h2d == Nanos{std::max(0, s2 - 10) + std::max(0, s1 - b3)});
    CHECK(result.totals.makespan == result.baseline + result.totals.stall.compute);
  }
}

TEST_CASE("only feature maps are offloaded, and with conv only inputs of convolutions") {
  const Trace trace = layer_trace({{"conv", 100_ns, 100_ns, 1_B},
                                   {"norm", 100_ns, 100_ns, 10_B},
                                   {"conv", 100_ns, 100_ns, 100_B},
                                   {"pool", 100_ns, 100_ns, 1000_B},
                                   {"addmm", 100_ns, 100_ns, 10000_B},
                                   {"addmm", 100_ns, 100_ns, 1_B}},
                                  60_B);
  CHECK(exact_run(trace, "vdnn(which=all)").totals.swap_out == 111_B);
  CHECK(exact_run(trace, "vdnn(which=conv)").totals.swap_out == 10_B);
}

TEST_CASE("in a network without convolutions, products of matrices take their place") {
  const Trace trace = layer_trace({{"norm", 100_ns, 100_ns, 1_B},
                                   {"addmm", 100_ns, 100_ns, 10_B},
                                   {"norm", 100_ns, 100_ns, 100_B},
                                   {"addmm", 100_ns, 100_ns, 1000_B}},
                                  60_B);
  CHECK(exact_run(trace, "vdnn(which=all)").totals.swap_out == 111_B);
  CHECK(exact_run(trace, "vdnn(which=conv)").totals.swap_out == 101_B);
}

TEST_CASE("a swap-in is not requested across a convolution") {
  // Buffers 1 and 3 are the inputs of the convolutions 2 and 4. The loss (op 7) requests buffer 3. Norms 6 and 5 do not
  // look beyond convolution 4, whose input is requested already. Convolution 4 (op 10) requests buffer 1.
  const Trace trace = layer_trace({{"norm", 100_ns, 100_ns, 10_B},
                                   {"conv", 100_ns, 100_ns, 10_B},
                                   {"norm", 100_ns, 100_ns, 10_B},
                                   {"conv", 100_ns, 100_ns, 10_B},
                                   {"norm", 100_ns, 100_ns, 10_B},
                                   {"norm", 100_ns, 100_ns, 10_B}},
                                  60_B);
  const Result result = exact_run(trace, "vdnn(which=conv)");
  CHECK(asked_before(trace, result, 3) == 7);
  CHECK(asked_before(trace, result, 1) == 10);
}

TEST_CASE("dyn takes the first of nothing, conv and all with which the step fits") {
  std::vector<ChainLayer> layers;
  for (const char* name : {"conv", "norm", "conv", "norm", "conv", "norm", "conv"})
    layers.push_back({name, 100_ns, 100_ns, 100_B});
  const Trace trace = layer_trace(layers, 100_B);
  std::vector<int> answers(4);
  for (std::int64_t capacity = 300; capacity <= 1000; capacity += 50) {
    INFO(capacity);
    const Result dyn = exact_run(trace, "vdnn", Bytes{capacity});
    int answer = 0;
    for (const char* policy : {"none", "vdnn(which=conv)", "vdnn(which=all)"}) {
      const Result fixed = exact_run(trace, policy, Bytes{capacity});
      if (fixed.outcome == Outcome::kOk) {
        CHECK(dyn.totals == fixed.totals);
        break;
      }
      ++answer;
    }
    CHECK((dyn.outcome == Outcome::kOk) == (answer < 3));
    ++answers[static_cast<std::size_t>(answer)];
  }
  for (const int times : answers) CHECK(times > 0);
}

}  // namespace tidepool::vdnn_test
