// A step of two gradients and two late updates, for orders in closed form.
#pragma once

#include "traces/builder.hpp"

namespace tidepool::tests {

/// Two gradients of 50 B, made one after the other, and an update of each weight (10 B) at the end. In the recorded
/// order, 120 B are alive at once; 70 B if each update runs directly after its gradient is made.
inline Trace two_updates() {
  TraceBuilder build;
  const BufferId weight[] = {build.existing({.size = 10_B}), build.existing({.size = 10_B})};
  BufferId gradient[2];
  for (int i = 0; i < 2; ++i) {
    gradient[i] = build.alloc({.size = 50_B});
    build.run({.name = build.text("backward"), .duration = 100_ns}, {{gradient[i], Access::kWrite, Evidence::kSchema}});
  }
  for (int i = 0; i < 2; ++i)
    build.run({.name = build.text("update"), .duration = 10_ns},
              {{weight[i], Access::kReadWrite, Evidence::kSchema}, {gradient[i], Access::kRead, Evidence::kSchema}});
  for (const BufferId each : gradient) build.free(each);
  return build.finish();
}

}  // namespace tidepool::tests
