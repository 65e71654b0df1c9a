// A chain of residual blocks, each with an expensive and a cheap value inside.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/builder.hpp"

namespace tidepool::tests {

/// Times of the forward ops of a block that make its inner values.
struct InnerTimes {
  Nanos a = 10'000_ns, b = 1'000_ns;
};

/// An op makes x of block 0. Block i makes a from x, b from a, and y, the next x, from x, a and b. All of these have
/// 1000 bytes. The loss makes a gradient from the last y. In backward, three ops of each block read b, then a, then x;
/// each makes a gradient from the one before. Gradients have 10 bytes. Ops take 1 us, except those in `times`. Buffers
/// are freed after their last reader.
inline Trace residual_trace(const std::vector<InnerTimes>& times) {
  TraceBuilder build;
  const auto make = [&](Phase phase, const std::vector<BufferId>& reads, std::int64_t size, Nanos time = 1'000_ns) {
    const BufferId made = build.alloc({.size = Bytes{size}});
    std::vector<TraceBuilder::Touch> touches;
    for (const BufferId read : reads) touches.push_back({.buffer = read});
    touches.push_back({.buffer = made, .access = Access::kWrite});
    build.run({.name = {}, .phase = phase, .duration = time}, touches);
    return made;
  };
  std::vector<BufferId> x{make(Phase::kForward, {}, 1'000)}, a, b;
  for (const InnerTimes& time : times) {
    a.push_back(make(Phase::kForward, {x.back()}, 1'000, time.a));
    b.push_back(make(Phase::kForward, {a.back()}, 1'000, time.b));
    x.push_back(make(Phase::kForward, {x.back(), a.back(), b.back()}, 1'000));
  }
  BufferId gradient = make(Phase::kForward, {x.back()}, 10);
  build.free(x.back());
  const auto step_back = [&](BufferId value) {
    const BufferId next = make(Phase::kBackward, {gradient, value}, 10);
    build.free(gradient);
    build.free(value);
    gradient = next;
  };
  for (std::size_t i = times.size(); i-- > 0;) {
    step_back(b[i]);
    step_back(a[i]);
    step_back(x[i]);
  }
  return build.finish();
}

}  // namespace tidepool::tests
