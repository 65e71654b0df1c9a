// Content that no op reads any more although its buffer is not freed yet, such as gradients during the optimizer.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The last content of a buffer, which is useless after its last use.
struct DeadContent {
  VersionId version;
  std::uint32_t last_use = 0;  ///< op
};

/// The dead content of all buffers that the program frees only after a later op, in the order of last uses. Buffers
/// that outlive the step are left out. O(uses + dead log dead).
std::vector<DeadContent> find_dead_content(const Trace& trace);

/// Actions that drop each content as soon as it is dead, sorted. For drafts that neither swap nor recompute it.
std::vector<Action> drops_of(const std::vector<DeadContent>& dead);

}  // namespace tidepool
