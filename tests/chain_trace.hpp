// The textbook case of recomputation: a chain of equal layers, forward and backward.
#pragma once

#include <vector>

#include "traces/builder.hpp"

namespace tidepool::tests {

/// x_0 exists before the step. Op i, from 1 to n = `length`, makes x_i from x_{i-1}. The loss makes g_n from x_n. Then
/// g_{i-1} is made from g_i and x_{i-1}, down to g_0. Each version has 1000 bytes and each op takes 1 us, except every
/// `dear`th forward op, which takes 2 us. Buffers other than x_0 and g_0 are freed after their last reader.
inline Trace chain_trace(std::size_t length, std::size_t dear = 1'000'000) {
  TraceBuilder build;
  const auto make = [&](Phase phase, std::vector<TraceBuilder::Touch> reads, Nanos time = Nanos{1'000}) {
    const BufferId made = build.alloc({.size = Bytes{1'000}});
    reads.push_back({.buffer = made, .access = Access::kWrite});
    build.run({.name = {}, .phase = phase, .duration = time}, reads);
    return made;
  };
  std::vector<BufferId> x{build.existing({.size = Bytes{1'000}})};
  for (std::size_t i = 1; i <= length; ++i)
    x.push_back(make(Phase::kForward, {{.buffer = x.back()}}, Nanos{i % dear == 0 ? 2'000 : 1'000}));
  BufferId gradient = make(Phase::kForward, {{.buffer = x.back()}});
  build.free(x.back());
  for (std::size_t i = length; i > 0; --i) {
    const BufferId next = make(Phase::kBackward, {{.buffer = gradient}, {.buffer = x[i - 1]}});
    build.free(gradient);
    if (i > 1) build.free(x[i - 1]);
    gradient = next;
  }
  return build.finish();
}

}  // namespace tidepool::tests
