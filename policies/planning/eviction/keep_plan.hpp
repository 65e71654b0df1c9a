// Plans of versions to keep in memory at some instants of a step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// Instants (ops in program order), each with a set of versions. The set of an instant is kept after the previous
/// instant (or from the first op on) up to and including its own. After the last instant any version may be evicted.
struct KeepPlan {
  struct Instant {
    std::uint32_t op = 0;
    std::vector<bool> keep;  // by version
  };
  std::vector<Instant> instants;

  /// The first instant at or after an op; none after the last one.
  const Instant* ahead(std::uint32_t op) const {
    const auto found = std::lower_bound(instants.begin(), instants.end(), op,
                                        [](const Instant& instant, std::uint32_t at) { return instant.op < at; });
    return found == instants.end() ? nullptr : &*found;
  }
};

}  // namespace tidepool
