// Reader of trace files, complete or truncated.
#pragma once

#include "traces/base/input.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A file without a whole index is read chunk by chunk. If it ends early or is damaged, the trace goes up to the last
/// whole chunk before the damage; its meta has "recovered" with the place and the reason, and its losses count at least
/// one dropped record. Without a whole chunk, or with an index, damage is an InputError.
/// @throws InputError  "run.tide:byte 8: format version 3; this tidepool reads version 1"
/// @throws InputError  "run.tide:byte 1234: the ops frame has checksum 0123456789abcdef; the file says
/// 0123456789abcdee"
/// @throws InputError  "run.tide: op 388 reads buffer 41, which was freed before it (step 880)"
Trace read_trace_file(const Input& input);

}  // namespace tidepool
