// Conditions on traces that runs are made of: one memory, and ops that say which buffers they use.
#pragma once

#include <string_view>

#include "traces/trace.hpp"

namespace tidepool {

/// Refuses a trace of several devices, whose memory cannot be added up.
/// @param purpose  why one device is expected, for the message
/// @throws InputError  "the trace is of 2 devices; expected one, as a run has one memory (tidepool import --device
///   keeps one)"
void require_one_device(const Trace& trace, std::string_view purpose);

/// Whether the trace has buffers and ops, and no op says which buffers it uses.
bool lacks_uses(const Trace& trace);

/// Refuses such a trace.
/// @param purpose  what needs the uses, for the message
/// @throws InputError  "no op of the trace says which buffers it uses, so a plan could move any buffer at no cost;
///   expected a recording of `tidepool record --torch`, or of `record --dry --torch`"
void require_uses(const Trace& trace, std::string_view purpose);

}  // namespace tidepool
