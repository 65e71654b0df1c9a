// SuperNeurons in closed form: reruns and peaks of segments, the tensor cache, prefetching.
#include <fmt/format.h>

#include <tuple>

#include "policies/hybrid/superneurons/segments.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "tests/catch.hpp"
#include "tests/exact_run.hpp"
#include "tests/layer_trace.hpp"

namespace tidepool::superneurons_test {

using tests::layer_trace;

namespace {

Result under(const Trace& trace, const std::string& options, Bytes capacity = kNoLimit) {
  return tests::exact_run_that_ends_well(trace, fmt::format("superneurons({})", options), capacity);
}

/// A convolution, `cheap` activations and a convolution. Each takes 100 ns and makes 1000 B.
Trace segment_of(std::size_t cheap) {
  std::vector<tests::ChainLayer> layers(cheap + 2, {"relu", 100_ns, 100_ns, 1000_B});
  layers.front().name = layers.back().name = "conv";
  return layer_trace(layers, 1000_B);
}

}  // namespace

TEST_CASE(
    "a segment of m layers runs again once, which takes m runs, or for every layer, which takes m (m + 1) / 2 runs") {
  for (std::int64_t m = 1; m <= 8; ++m) {
    INFO(m);
    const Trace trace = segment_of(static_cast<std::size_t>(m));
    CHECK(under(trace, "when=always,recompute=off").totals.recompute_count == 0);
    CHECK(under(trace, "when=always,recompute=speed").totals.recompute_count == m);
    CHECK(under(trace, "when=always,recompute=memory").totals.recompute_count == m * (m + 1) / 2);
    // A layer's backward uses three buffers, so the limit is three; a segment that runs again once keeps m buffers.
    CHECK(under(trace, "when=always").totals.recompute_count == (m <= 3 ? m : m * (m + 1) / 2));
  }
}

TEST_CASE(
    "the peak without reruns, with segments that run again once, and with segments that run again for every layer") {
  for (std::int64_t m = 2; m <= 8; ++m) {
    INFO(m);
    const Trace trace = segment_of(static_cast<std::size_t>(m));
    // In the backward of the last convolution: x_0, all that is kept, and two gradients.
    CHECK(under(trace, "when=always,recompute=off").totals.peak == 1000_B * (1 + (m + 1) + 2));
    CHECK(under(trace, "when=always,recompute=speed").totals.peak == 1000_B * (1 + (m + 1) + 2));
    // The checkpoint, the layer's input, its recomputed output and two gradients.
    CHECK(under(trace, "when=always,recompute=memory").totals.peak == 1000_B * (1 + 1 + 1 + 2));
  }
}

TEST_CASE("with recompute=speed, the forward phase keeps only its checkpoints") {
  // Four segments of three activations. All x have 17000 B, the checkpoints 5000 B.
  std::vector<tests::ChainLayer> layers(17, {"relu", 100_ns, 100_ns, 1000_B});
  for (std::size_t i = 0; i < layers.size(); i += 4) layers[i].name = "conv";
  const Trace trace = layer_trace(layers, 1000_B);
  CHECK(under(trace, "when=always,recompute=off").totals.peak == 1000_B * (1 + 16 + 2));
  // In the backward of the last convolution: x_0, four checkpoints, its segment of three, two gradients.
  CHECK(under(trace, "when=always,recompute=speed").totals.peak == 1000_B * (1 + 4 + 3 + 2));
  CHECK(under(trace, "when=always,recompute=memory").totals.peak == 1000_B * (1 + 4 + 1 + 2));
}

TEST_CASE("if everything fits, the tensor cache copies nothing, but unconditional offloading still copies") {
  const Trace trace = layer_trace(std::vector<tests::ChainLayer>(5, {"conv", 100_ns, 100_ns, 100_B}), 100_B);
  CHECK(under(trace, "when=always").totals.swap_out == 0_B);
  CHECK(under(trace, "when=always,offload=always").totals.swap_out == 400_B);
  CHECK(under(trace, "offload=always").totals.swap_out == 0_B);  // all fits, and the default is when=short
  // At most 700 B are live. With 50 B less, one x must leave.
  REQUIRE(trace.ideal_peak() == 700_B);
  CHECK(under(trace, "", 700_B).totals.swap_out == 0_B);
  CHECK(under(trace, "", 650_B).totals.swap_out == 100_B);
}

TEST_CASE("a convolution's inputs are requested when the backward of the next convolution begins") {
  for (const auto& [size, back, late] : {std::tuple{100_B, 4, 0}, std::tuple{130_B, 3, 30}}) {
    const Trace trace = layer_trace(std::vector<tests::ChainLayer>(5, {"conv", 100_ns, 100_ns, size}), size);
    const Result result = under(trace, "when=always,offload=always");
    // x_4 is swapped in on demand, or stays if it has not left when it is read. x_3 to x_1 are swapped in beside one
    // layer each.
    CHECK(result.totals.swap_in == size * back);
    CHECK(result.totals.stall.h2d.count() == (back - 3) * size.count() + late * 3);
  }
}

TEST_CASE("tensors that several layers read are kept, so that a sum of branches needs no rerun from before them") {
  // conv | a = relu (read by the next relu and by the sum) | b = relu | c = a + b | conv reads c.
  TraceBuilder build;
  const BufferId x = build.existing({.size = 1000_B});
  std::vector<BufferId> made;
  const auto layer = [&](std::string_view name, const std::vector<BufferId>& reads, Phase phase) {
    const BufferId out = build.alloc({.size = 1000_B});
    std::vector<TraceBuilder::Touch> touches;
    for (const BufferId read : reads) touches.push_back({read});
    touches.push_back({out, Access::kWrite});
    build.run({.name = build.text(name),
               .module = build.text(fmt::format("{}{}", phase == Phase::kForward ? "m" : "b", made.size())),
               .phase = phase,
               .duration = 100_ns},
              touches);
    made.push_back(out);
    return out;
  };
  const BufferId c0 = layer("conv", {x}, Phase::kForward), a = layer("relu", {c0}, Phase::kForward),
                 b = layer("relu", {a}, Phase::kForward), c = layer("add", {a, b}, Phase::kForward),
                 d = layer("conv", {c}, Phase::kForward);
  layer("back", {d, c}, Phase::kBackward);
  layer("back", {b, a}, Phase::kBackward);
  layer("back", {a, c0}, Phase::kBackward);
  build.only_given_outputs();
  const Trace trace = build.finish();
  const Layers layers = find_layers(trace);
  const std::vector<Segment> segments = find_segments(trace, layers, LayerKind::kConvolution);
  REQUIRE(segments.size() == 1);
  CHECK(segments[0].kept == 2000_B);                                                // b and c
  CHECK(under(trace, "when=always,recompute=memory").totals.recompute_count == 3);  // b and c, then b again
}

}  // namespace tidepool::superneurons_test
