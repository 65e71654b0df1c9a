// The buffers that hold memory at one instant of a step, since when, until when, and who uses them next.
#pragma once

#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// A buffer that is alive at an instant. Ops that do not exist are none.
struct LiveBuffer {
  BufferId buffer;
  OpId since;           ///< the op that it was allocated for, else the first that uses it; none if it is older
  OpId last_use;        ///< the last op before the instant's op that uses it
  OpId next_use;        ///< the first op from the instant's op on that uses it
  OpId until;           ///< the last op that runs before the buffer is freed; none if it outlives the trace
  bool in_use = false;  ///< the instant's op uses it
};

/// An instant in front of an op.
struct Instant {
  std::size_t step = 0;             ///< position in Trace::steps(): what stands before has happened
  OpId op;                          ///< the next op to run; none behind the last one
  Bytes live;                       ///< sum of the live buffers
  Bytes in_use;                     ///< of those that the op uses
  std::vector<LiveBuffer> buffers;  ///< largest first, then by id
};

/// Whether all buffers are on the same device.
bool is_of_one_device(const Trace& trace);

/// Refuses traces without buffers, and those whose devices' memory would be added up.
/// @param purpose  what would be done with one device
/// @throws InputError  "the trace is of 2 devices; expected one, as `explain` shows one"
void require_one_device(const Trace& trace, std::string_view purpose);

/// The first instant at which most bytes are alive. O(steps + uses).
Instant peak_instant(const Trace& trace);
/// The instant at which `op` runs: its outputs have their places, what it is the last to use is still there.
Instant instant_of(const Trace& trace, OpId op);

/// The memory of the iteration around an instant, if buffers left the device while no op uses them.
struct Lowered {
  Bytes absent;  ///< of the buffers that would be away at the instant
  Bytes peak;    ///< the most that is alive in the iteration then
  OpId op;       ///< the op in front of which that is; none behind the last one
};

/// The peak of the iteration that holds `instant`, were each of the buffers `gone` away from behind its last use before
/// the instant until in front of its next use. It says how far the peak can fall before another instant holds it. A
/// buffer in use stays. O(steps).
Lowered lowered_peak(const Trace& trace, const Instant& instant, const std::vector<LiveBuffer>& gone);

}  // namespace tidepool
