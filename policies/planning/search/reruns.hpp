// Cascades of runs that follow when content is dropped and made again.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Follows a step in which the content of some gaps is on the host and that of others is dropped. What is dropped is
/// made again in front of the op that needs it, from inputs that must be there then: one that is on the host comes back
/// that early, one that was dropped is made again first, and stays, and one that the program has freed is made again
/// for the time being.
class Reruns {
 public:
  /// @param trace, gaps  outlive it
  Reruns(const Trace& trace, const std::vector<Gap>& gaps);

  struct Effect {
    bool possible = true;            ///< false: something needed can no longer be made
    std::vector<std::uint32_t> due;  ///< by gap: the position in front of which it ends: when it is due or, where
                                     ///< something else is made from it, earlier
    std::vector<Nanos> time;         ///< by op: what is run again in front of it
    std::vector<Bytes> held;         ///< by op: most bytes that were brought back only for that
    Nanos total;                     ///< of all that is run again
  };
  /// @param copied, dropped  gaps, each in one of them at most. O(uses and what is run again)
  Effect follow(std::span<const std::uint32_t> copied, std::span<const std::uint32_t> dropped) const;

  static constexpr Nanos kImpossible{std::numeric_limits<std::int64_t>::max()};
  /// By gap: what is run again if nothing else is dropped; kImpossible: its content cannot be made again. O(uses of
  /// what is run again for each).
  std::vector<Nanos> costs() const;

 private:
  class Walk;

  const Trace& trace_;
  const std::vector<Gap>& gaps_;
  std::vector<std::vector<std::uint32_t>> released_;  // by op: gaps
};

}  // namespace tidepool
