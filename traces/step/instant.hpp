// Live buffers at one instant of a step, each with the ops of its allocation, of its last and next use, and of its end.
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// A buffer that is alive at an instant. Ops that do not exist are none.
struct LiveBuffer {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  BufferId buffer;
  std::size_t allocated = kNone;  ///< position of its allocation in Trace::steps(); kNone: older than the trace
  std::size_t freed = kNone;      ///< position of its free; kNone: never
  OpId since;           ///< the op that it was allocated for, else its first user; none if older than the trace
  OpId last_use;        ///< the last op before the instant that uses it
  OpId next_use;        ///< the first op at or after the instant that uses it
  OpId until;           ///< the last op before the buffer is freed; none if it is never freed
  bool in_use = false;  ///< the instant's op uses it
};

/// An instant just before an op.
struct Instant {
  std::size_t step = 0;             ///< position in Trace::steps(): the steps before it have happened
  OpId op;                          ///< the next op to run; none after the last one
  Bytes live;                       ///< sum of the live buffers
  Bytes in_use;                     ///< sum of the live buffers that the op uses
  std::vector<LiveBuffer> buffers;  ///< largest first, then by id
};

/// Refuses a trace without buffers, and one of several devices.
/// @param purpose  why one device is expected, for the message of require_one_device()
/// @throws InputError
void require_one_memory(const Trace& trace, std::string_view purpose);

/// The bytes of live buffers that no op uses at the instant or later, although the trace says which ops use buffers.
/// What outlives the step and is not made in it (parameters, states) does not count: the next step may use it.
Bytes never_used_again(const Trace& trace, const Instant& instant);

/// The first instant at which the sum of live bytes is largest. O(steps + uses + buffers log buffers).
Instant peak_instant(const Trace& trace);
/// The instant at which `op` runs: its outputs are allocated, and buffers that it is the last to use are not yet freed.
Instant instant_of(const Trace& trace, OpId op);

/// The memory of the iteration around an instant if some buffers are absent while no op uses them.
struct Lowered {
  Bytes absent;  ///< sum of the buffers absent at the instant
  Bytes peak;    ///< the largest sum of live bytes in the iteration without them
  OpId op;       ///< the op that runs next at this peak; none after the last one
};

/// The peak of the iteration around `instant` if each buffer in `gone` is absent from its last use before the instant
/// to its next use. The new peak may be at another instant, at which fewer of these buffers are absent. A buffer that
/// the op at `instant` uses stays. O(steps).
Lowered lowered_peak(const Trace& trace, const Instant& instant, const std::vector<LiveBuffer>& gone);

}  // namespace tidepool
