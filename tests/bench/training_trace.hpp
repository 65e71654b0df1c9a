// A training step of any size for benchmarks: the same trace for the same arguments, on every platform.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/random_trace.hpp"
#include "traces/builder.hpp"

namespace tidepool::tests {

/// About `ops` ops of a residual network: per layer one op forward (every fourth also reads the input of the layer
/// four before it) and two backward, for the input and for the parameter; then one update in place per parameter. A
/// layer's output lives until its backward ops, a gradient until it is read. Times vary by a factor of up to 8, and so
/// do the sizes of buffers of one kind.
inline Trace training_trace(int ops, std::uint64_t seed = 1) {
  using Touch = TraceBuilder::Touch;
  const int layers = ops / 4;
  Random random{seed};
  TraceBuilder builder;
  const auto size = [&] { return Bytes{static_cast<std::int64_t>(1 + random.below(8)) << 20}; };
  const auto run = [&](Phase phase, std::vector<Touch> touches) {
    Op op{.phase = phase};
    op.duration = Nanos{static_cast<std::int64_t>(10'000 + random.below(70'000))};
    builder.run(op, touches);
  };

  std::vector<BufferId> parameters, outputs, weight_gradients;
  for (int i = 0; i < layers; ++i)
    parameters.push_back(builder.existing({.size = size() / 8, .kind = BufferKind::kParameter}));
  const BufferId batch = builder.existing({.size = size(), .kind = BufferKind::kInput});
  const auto input_of = [&](int layer) { return layer == 0 ? batch : outputs[static_cast<std::size_t>(layer - 1)]; };
  const auto parameter_of = [&](int layer) { return parameters[static_cast<std::size_t>(layer)]; };
  const auto is_joined = [](int layer) { return layer >= 4 && layer % 4 == 0; };

  builder.mark(MarkKind::kPhase, "forward");
  for (int i = 0; i < layers; ++i) {
    outputs.push_back(builder.alloc({.size = size(), .kind = BufferKind::kActivation}));
    std::vector<Touch> touches{{input_of(i)}, {parameter_of(i)}};
    if (is_joined(i)) touches.push_back({input_of(i - 4)});
    touches.push_back({outputs.back(), Access::kWrite});
    run(Phase::kForward, touches);
  }
  builder.mark(MarkKind::kPhase, "backward");
  BufferId gradient = builder.alloc({.size = builder.so_far().buffers[outputs.back().index()].size});
  run(Phase::kBackward, {{outputs.back()}, {gradient, Access::kWrite}});
  for (int i = layers - 1; i >= 0; --i) {
    const BufferId parameter = parameter_of(i);
    weight_gradients.push_back(
        builder.alloc({.size = builder.so_far().buffers[parameter.index()].size, .kind = BufferKind::kGradient}));
    run(Phase::kBackward, {{gradient}, {input_of(i)}, {weight_gradients.back(), Access::kWrite}});
    const BufferId next = builder.alloc({.size = builder.so_far().buffers[input_of(i).index()].size});
    run(Phase::kBackward, {{gradient}, {parameter}, {outputs[static_cast<std::size_t>(i)]}, {next, Access::kWrite}});
    builder.free(gradient);
    builder.free(outputs[static_cast<std::size_t>(i)]);
    gradient = next;
  }
  builder.free(gradient);
  builder.mark(MarkKind::kPhase, "optimizer");
  for (int i = 0; i < layers; ++i) {
    const BufferId weight_gradient = weight_gradients[static_cast<std::size_t>(layers - 1 - i)];
    run(Phase::kOptimizer, {{weight_gradient}, {parameter_of(i), Access::kReadWrite}});
    builder.free(weight_gradient);
  }
  return builder.finish();
}

}  // namespace tidepool::tests
