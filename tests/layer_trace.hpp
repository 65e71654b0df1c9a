// A chain of layers, on which the results of policies that work layer by layer have closed forms.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "traces/builder.hpp"

namespace tidepool::tests {

struct ChainLayer {
  std::string_view name;  ///< of its forward and its backward op
  Nanos forward, backward;
  Bytes output;
};

/// x_0, of size `input`, exists before the step. Op i makes x_i from x_(i-1), i = 1..n; the loss (10 ns, 1 B) reads
/// x_n. Backward, g_n is made from the loss (10 ns), then g_(i-1) from g_i and x_(i-1); the gradient g_i has the size
/// of x_i. Buffers other than x_0 and g_0 are freed after their last reader. With `modules`, layer i belongs to module
/// "m<i>".
inline Trace layer_trace(const std::vector<ChainLayer>& layers, Bytes input, bool modules = true) {
  TraceBuilder build;
  std::vector<BufferId> x{build.existing({.size = input})};
  std::vector<Bytes> size{input};
  const auto module = [&](std::size_t i) { return build.text(modules ? fmt::format("m{}", i) : std::string{}); };
  for (std::size_t i = 0; i < layers.size(); ++i) {
    size.push_back(layers[i].output);
    x.push_back(build.alloc({.size = layers[i].output}));
    build.run({.name = build.text(layers[i].name),
               .module = module(i + 1),
               .phase = Phase::kForward,
               .duration = layers[i].forward},
              {{x[i]}, {x[i + 1], Access::kWrite}});
  }
  const BufferId loss = build.alloc({.size = 1_B});
  build.run({.name = build.text("loss"), .phase = Phase::kForward, .duration = 10_ns},
            {{x.back()}, {loss, Access::kWrite}});
  build.free(x.back());
  BufferId gradient = build.alloc({.size = size.back()});
  build.run({.name = build.text("loss"), .phase = Phase::kBackward, .duration = 10_ns},
            {{loss}, {gradient, Access::kWrite}});
  build.free(loss);
  for (std::size_t i = layers.size(); i-- > 0;) {
    const BufferId next = build.alloc({.size = size[i]});
    build.run({.name = build.text(layers[i].name),
               .module = module(i + 1),
               .phase = Phase::kBackward,
               .duration = layers[i].backward},
              {{gradient}, {x[i]}, {next, Access::kWrite}});
    build.free(gradient);
    if (i > 0) build.free(x[i]);
    gradient = next;
  }
  return build.finish();
}

}  // namespace tidepool::tests
