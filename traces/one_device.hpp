// Traces whose buffers all share one memory.
#pragma once

#include <string_view>

#include "traces/trace.hpp"

namespace tidepool {

/// Refuses a trace of several devices, whose memory cannot be added up.
/// @param purpose  why one device is expected, for the message
/// @throws InputError  "the trace is of 2 devices; expected one, as a run has one memory (tidepool import --device
///   keeps one)"
void require_one_device(const Trace& trace, std::string_view purpose);

}  // namespace tidepool
