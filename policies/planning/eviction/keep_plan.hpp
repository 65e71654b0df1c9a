// Versions that should be in memory at some instants of a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// What to keep until each of some instants, which are ops in program order. Up to the first instant its set is to be
/// kept, then up to the second that of the second, and so on; behind the last one anything may go.
struct KeepPlan {
  struct Instant {
    std::uint32_t op = 0;
    std::vector<bool> keep;  // by version
  };
  std::vector<Instant> instants;

  /// The first instant at or behind an op; nothing behind the last.
  const Instant* ahead(std::uint32_t op) const {
    const auto found = std::lower_bound(instants.begin(), instants.end(), op,
                                        [](const Instant& instant, std::uint32_t at) { return instant.op < at; });
    return found == instants.end() ? nullptr : &*found;
  }
};

}  // namespace tidepool
