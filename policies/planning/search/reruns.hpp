// Cascades of reruns after drops.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Follows a step in which the content of some gaps is on the host and that of others is dropped. Dropped content is
/// recomputed before the op that needs it. The inputs of a rerun must be resident. An input on the host is swapped in
/// that early; a dropped input is recomputed first, and stays; an input that the program has freed is recomputed for
/// this rerun only.
class Reruns {
 public:
  /// @param trace, gaps  outlive this object
  Reruns(const Trace& trace, const std::vector<Gap>& gaps);

  struct Effect {
    bool possible = true;            ///< false: a needed version cannot be recomputed any more
    std::vector<std::uint32_t> due;  ///< by gap: the position before which it ends: its due op or, if a rerun reads
                                     ///< it, earlier
    std::vector<Nanos> time;         ///< by op: time of the reruns before it
    std::vector<Bytes> held;         ///< by op: most bytes of versions that are resident only for reruns
    Nanos total;                     ///< of all reruns
  };
  /// @param copied, dropped  gaps, each in one of them at most. O(uses and reruns)
  Effect follow(std::span<const std::uint32_t> copied, std::span<const std::uint32_t> dropped) const;

  static constexpr Nanos kImpossible{std::numeric_limits<std::int64_t>::max()};
  /// By gap: rerun time if nothing else is dropped; kImpossible: the gap crosses the boundary, or its content cannot be
  /// recomputed, or not by at most 100 reruns. O(uses of the reruns of each).
  std::vector<Nanos> costs() const;

 private:
  class Walk;

  const Trace& trace_;
  const std::vector<Gap>& gaps_;
  std::vector<std::vector<std::uint32_t>> released_;  // by op: gaps
};

}  // namespace tidepool
