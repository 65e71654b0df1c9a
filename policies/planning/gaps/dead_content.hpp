// Content that nobody reads any more, although its buffer is not freed yet: gradients while the optimizer goes on.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// What a buffer holds when it is used for the last time, and is of no use from the next op on.
struct DeadContent {
  VersionId version;
  std::uint32_t last_use = 0;  ///< op
};

/// In the order of last uses: of all buffers that the program frees only after another op has run. What the step hands
/// on is none. O(uses + dead log dead).
std::vector<DeadContent> find_dead_content(const Trace& trace);

/// Drops it as soon as it is dead, sorted. For drafts: it need not be copied anywhere, nor made again.
std::vector<Action> drops_of(const std::vector<DeadContent>& dead);

}  // namespace tidepool
