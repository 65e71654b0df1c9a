// A network of numbered blocks, on which the results of policies that work block by block have closed forms.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "traces/builder.hpp"

namespace tidepool::tests {

/// Blocks named layers.i, from 0 on. Block i has an op of 60 ns that makes y_i (inner[i] bytes) from x_i, and one of 40
/// ns that makes x_(i+1) (10 B) from y_i. Its backward op takes 100 ns and makes g_i (10 B) from g_(i+1), y_i and x_i.
/// Between forward and backward, an op of 10 ns makes the loss (1 B) from the last x, and another one of 10 ns makes
/// the last g from the loss. x_0 (10 B) exists before the step. Buffers other than x_0 and g_0 are freed after their
/// last reader.
inline Trace blocks_of_two(const std::vector<Bytes>& inner) {
  const std::size_t count = inner.size();
  TraceBuilder build;
  std::vector<BufferId> x{build.existing({.size = 10_B})}, y;
  const auto run = [&](std::string_view module, Phase phase, Nanos time, const std::vector<TraceBuilder::Touch>& uses) {
    build.run({.name = build.text("op"), .module = build.text(module), .phase = phase, .duration = time}, uses);
  };
  for (std::size_t i = 0; i < count; ++i) {
    y.push_back(build.alloc({.size = inner[i]}));
    run(fmt::format("layers.{}.up", i), Phase::kForward, 60_ns, {{x[i]}, {y[i], Access::kWrite}});
    x.push_back(build.alloc({.size = 10_B}));
    run(fmt::format("layers.{}.down", i), Phase::kForward, 40_ns, {{y[i]}, {x[i + 1], Access::kWrite}});
  }
  const BufferId loss = build.alloc({.size = 1_B});
  run("loss", Phase::kForward, 10_ns, {{x.back()}, {loss, Access::kWrite}});
  build.free(x.back());
  BufferId gradient = build.alloc({.size = 10_B});
  run("loss", Phase::kBackward, 10_ns, {{loss}, {gradient, Access::kWrite}});
  build.free(loss);
  for (std::size_t i = count; i-- > 0;) {
    const BufferId next = build.alloc({.size = 10_B});
    run(fmt::format("layers.{}.up", i), Phase::kBackward, 100_ns, {{gradient}, {y[i]}, {x[i]}, {next, Access::kWrite}});
    build.free(gradient);
    build.free(y[i]);
    if (i > 0) build.free(x[i]);
    gradient = next;
  }
  return build.finish();
}

/// The same with 100 B for each y_i.
inline Trace blocks_of_two(std::size_t count) { return blocks_of_two(std::vector<Bytes>(count, 100_B)); }

}  // namespace tidepool::tests
