// Content that the forward phase leaves for the backward phase: static planners choose from it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

inline constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

/// A version of the forward phase that is read again behind it, and that an op can make again.
struct Saved {
  VersionId version;
  std::uint32_t made = 0;          ///< op
  std::uint32_t last_forward = 0;  ///< last op of the forward phase that uses it, at least `made`
  std::uint32_t first_again = 0;   ///< first op behind the forward phase that uses it; number of ops: only the end does
};

/// The first op marked as backward; where nothing is marked, the op behind the one at the largest sum of live bytes.
std::uint32_t first_backward_op(const Trace& trace);

/// By op: bytes live while it runs when nothing is ever dropped; what exists at the start counts from the start.
std::vector<Bytes> live_bytes(const Trace& trace);

/// By op: the fewest bytes live since the op before it.
std::vector<Bytes> live_bytes_before(const Trace& trace);

/// By version: the op in front of which it is gone when nothing is ever dropped, since it is freed or replaced; the
/// number of ops where it is not.
std::vector<std::uint32_t> ends_of_versions(const Trace& trace);

/// In the order in which they are made. What is replaced in place within the forward phase and what has no bytes is not
/// among them. O(uses).
std::vector<Saved> saved_versions(const Trace& trace, std::uint32_t backward);

}  // namespace tidepool
