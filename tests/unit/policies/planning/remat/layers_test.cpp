// Layers in closed form: where they end, the versions that they keep, and their backward ops.
#include "policies/planning/remat/layers.hpp"

#include "tests/catch.hpp"
#include "tests/layer_trace.hpp"

namespace tidepool::layers_test {

namespace {

const std::vector<tests::ChainLayer> kThree{{"aten::convolution", 100_ns, 200_ns, 50_B},
                                            {"aten::relu", 10_ns, 10_ns, 50_B},
                                            {"aten::addmm", 20_ns, 30_ns, 40_B}};

}  // namespace

TEST_CASE("modules are layers, and backward ops belong to the layer that used their inputs") {
  // Ops 0 to 2 run forward, 3 is the loss, 4 is its backward, 5 to 7 are the backward of the layers.
  const Layers layers = find_layers(tests::layer_trace(kThree, 60_B));
  CHECK(layers.layers == std::vector<Layer>{{0, 1, 7, 8, LayerKind::kConvolution},
                                            {1, 2, 6, 7, LayerKind::kOther},
                                            {2, 3, 5, 6, LayerKind::kProduct},
                                            {3, 4, 4, 5, LayerKind::kOther}});
  REQUIRE(layers.kept.size() == 3);  // x_1, x_2 and the loss; x_0 is from before, x_3 is not read again
  for (std::uint32_t i = 0; i < 2; ++i) {
    CHECK(layers.kept[i].maker == i);
    CHECK(layers.kept[i].origin == i);
    CHECK(layers.kept[i].reader == i + 1);
    CHECK(layers.kept[i].due == i + 1);
    CHECK(layers.kept[i].saved.first_again == 6 - i);
  }
  CHECK(layers.kept[2].reader == layers.kept[2].maker);
  CHECK(layers.heavy() == LayerKind::kConvolution);
  for (std::uint32_t op = 0; op < 4; ++op) CHECK(layers.layer_of(op) == op);
}

TEST_CASE("without modules, a layer ends where a later op reads one of its outputs that is kept") {
  // The loss reads x_3, which is not kept, so the loss is part of the last layer.
  const Layers layers = find_layers(tests::layer_trace(kThree, 60_B, false));
  CHECK(layers.layers == std::vector<Layer>{{0, 1, 7, 8, LayerKind::kConvolution},
                                            {1, 2, 6, 7, LayerKind::kOther},
                                            {2, 4, 4, 6, LayerKind::kProduct}});
}

TEST_CASE("content that an activation updates in place has the convolution as origin, a branch its last reader") {
  // a = conv(image) | a = relu(a) in place | b = pool(a) | c = a + b; backward reads b, then a (of conv and relu).
  TraceBuilder build;
  const BufferId image = build.existing({.size = 10_B});
  const auto op = [&](std::string_view module, Phase phase, const std::vector<TraceBuilder::Touch>& touches) {
    build.run({.name = build.text("op"), .module = build.text(module), .phase = phase, .duration = 10_ns}, touches);
  };
  const BufferId a = build.alloc({.size = 100_B}), b = build.alloc({.size = 100_B}), c = build.alloc({.size = 100_B});
  op("net.conv1", Phase::kForward, {{image}, {a, Access::kWrite}});
  op("net.relu", Phase::kForward, {{a, Access::kReadWrite}});
  op("net.max_pool", Phase::kForward, {{a}, {b, Access::kWrite}});
  op("net", Phase::kForward, {{a}, {b}, {c, Access::kWrite}});
  const BufferId g = build.alloc({.size = 100_B});
  op("", Phase::kBackward, {{b}, {g, Access::kWrite}});
  op("", Phase::kBackward, {{g, Access::kReadWrite}, {a}});
  const Layers layers = find_layers(build.finish());
  REQUIRE(layers.kept.size() == 2);
  CHECK(layers.layers[0].kind == LayerKind::kConvolution);
  CHECK(layers.layers[2].kind == LayerKind::kPool);
  CHECK(layers.kept[0].maker == 1);  // a after relu
  CHECK(layers.kept[0].origin == 0);
  CHECK(layers.kept[0].reader == 3);
  CHECK(layers.kept[1].maker == 2);
}

TEST_CASE("conversions are no convolutions, and only the last part of a module's name counts") {
  for (const auto& [op, module, kind] :
       {std::tuple{"aten::_to_copy.convert", "net.cast", LayerKind::kOther},
        std::tuple{"implicit_convolve_sgemm", "", LayerKind::kConvolution},
        std::tuple{"aten::native_batch_norm", "Conv2d_1a.bn", LayerKind::kOther},
        std::tuple{"kernel", "layer1.Conv2", LayerKind::kConvolution},
        std::tuple{"aten::_scaled_dot_product_efficient_attention", "h.0.attn", LayerKind::kProduct},
        std::tuple{"aten::addmm", "head", LayerKind::kProduct}}) {
    INFO(op);
    TraceBuilder build;
    const BufferId x = build.alloc({.size = 10_B});
    build.run({.name = build.text(op), .module = build.text(module), .duration = 1_ns}, {{x, Access::kWrite}});
    build.run({.name = build.text("back"), .phase = Phase::kBackward, .duration = 1_ns}, {{x}});
    CHECK(find_layers(build.finish()).layers.at(0).kind == kind);
  }
}

TEST_CASE("a step without a forward phase has no layers") {
  TraceBuilder build;
  const BufferId x = build.existing({.size = 10_B});
  build.run({.phase = Phase::kBackward, .duration = 1_ns}, {{x}});
  const Layers layers = find_layers(build.finish());
  CHECK(layers.size() == 0);
  CHECK(layers.kept.empty());
}

}  // namespace tidepool::layers_test
