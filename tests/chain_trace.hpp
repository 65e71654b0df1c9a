// The textbook case of recomputation: a chain of equal layers and its way back.
#pragma once

#include <vector>

#include "traces/builder.hpp"

namespace tidepool::tests {

/// x_i is made from x_(i-1) for i = 1..layers, where x_0 exists before the step; a loss makes g_layers from x_layers;
/// and g_(i-1) is made from g_i and x_(i-1). Every op takes 1 us, every buffer 1000 B, and each is freed after its last
/// use; g_0 is handed on.
inline Trace chain_trace(int layers) {
  TraceBuilder build;
  const auto alloc = [&] { return build.alloc({.size = Bytes{1000}}); };
  std::vector<BufferId> x{build.existing({.size = Bytes{1000}})};
  for (int i = 1; i <= layers; ++i) {
    const BufferId next = alloc();
    build.run({.duration = 1_us}, {{x.back()}, {next, Access::kWrite}});
    x.push_back(next);
  }
  BufferId g = alloc();
  build.run({.duration = 1_us}, {{x.back()}, {g, Access::kWrite}});
  build.free(x.back());
  for (std::size_t i = x.size() - 1; i > 0; --i) {
    const BufferId next = alloc();
    build.run({.duration = 1_us}, {{g}, {x[i - 1]}, {next, Access::kWrite}});
    build.free(g);
    build.free(x[i - 1]);
    g = next;
  }
  return build.finish();
}

}  // namespace tidepool::tests
