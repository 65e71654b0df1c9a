// Positions from which the bytes of a freed buffer can be reused without a race between streams.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The host frees a buffer after it has issued the last op that uses the buffer; the op may run later on its stream.
/// Another buffer can have the bytes once every stream that uses a later buffer is ordered behind every op that used
/// the freed one. A stream is ordered behind its own ops, behind ops of other streams by recorded event waits, and
/// behind an op X if the stream reads, directly or not, content that X or a later op of X's stream made (a program
/// without races has ordered these).
/// @return by buffer: the first such position, at least the position of its free, in a count of the allocs and frees of
///         `device`; -1 for buffers of other devices and for those that are not freed
std::vector<std::int64_t> stream_ends(const Trace& trace, std::uint16_t device);

}  // namespace tidepool
