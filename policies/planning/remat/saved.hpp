// Versions that the forward phase leaves for the backward phase: the candidates of static planners.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

inline constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

/// A version that the forward phase makes, that is used after this phase or is an output of the step, and that can be
/// recomputed.
struct Saved {
  VersionId version;
  std::uint32_t made = 0;          ///< op
  std::uint32_t last_forward = 0;  ///< last op of the forward phase that uses it, at least `made`
  std::uint32_t first_again = 0;   ///< first op after the forward phase that uses it; the number of ops if none does
};

/// The first op marked as backward; if none is marked, the op after the one with the most live bytes (the number of ops
/// if that is the last op; 0 if no op has more than were live before the step).
std::uint32_t first_backward_op(const Trace& trace);

/// By op: live bytes while it runs if nothing is ever dropped; buffers from before the step count from the start.
std::vector<Bytes> live_bytes(const Trace& trace);

/// By op: the fewest bytes live between the previous op and this one.
std::vector<Bytes> live_bytes_before(const Trace& trace);

/// By version, if nothing is ever dropped: the op that replaces it or the first op after its free, whichever is first;
/// the number of ops if there is neither.
std::vector<std::uint32_t> ends_of_versions(const Trace& trace);

/// All versions as in Saved, in the order of their producers. Versions that the forward phase replaces in place and
/// versions without bytes are left out. O(uses).
/// @param backward  the first op after the forward phase
std::vector<Saved> saved_versions(const Trace& trace, std::uint32_t backward);

}  // namespace tidepool
