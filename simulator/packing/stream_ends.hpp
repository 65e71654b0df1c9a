// Times at which the streams, not the host, are done with a freed buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The host frees a buffer when it has issued the last op that uses it. Its bytes may become another buffer's only from
/// where every stream that will use a later buffer is ordered behind every op that used this one: by being that op's
/// own stream, by recorded event waits, or by reading, directly or not, what that op or a later one of its stream made
/// (a program that is right has ordered these).
/// @return by buffer: the first such position, at least the position of its free, in a count of the allocs and frees of
///         `device`; -1 for buffers of other devices and for those that are not freed
std::vector<std::int64_t> stream_ends(const Trace& trace, std::uint16_t device);

}  // namespace tidepool
