// Content that nobody reads any more although its buffer is not freed yet, like gradients during the optimizer.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The content of a buffer at its last use; it is useless from the next op on.
struct DeadContent {
  VersionId version;
  std::uint32_t last_use = 0;  ///< op
};

/// The dead content of all buffers that the program frees only after a later op, in the order of last uses. Buffers
/// that outlive the step are not among them. O(uses + dead log dead).
std::vector<DeadContent> find_dead_content(const Trace& trace);

/// Actions that drop each content as soon as it is dead, sorted. For drafts: it is neither swapped nor recomputed.
std::vector<Action> drops_of(const std::vector<DeadContent>& dead);

}  // namespace tidepool
