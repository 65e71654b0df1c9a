// Buffers and ops of one trace for the builder of another: their names become texts of the new trace.
#pragma once

#include "traces/builder.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Neither there before the new trace nor kept after it: TraceBuilder::existing() and the frees decide that anew.
inline Buffer copied(TraceBuilder& builder, const Trace& trace, BufferId id) {
  Buffer buffer = trace.buffer(id);
  buffer.name = builder.text(trace.text(buffer.name));
  buffer.born_before = buffer.outlives = false;
  return buffer;
}

/// Without its recorded times: it begins after the op before it. The duration stays.
inline Op copied(TraceBuilder& builder, const Trace& trace, OpId id) {
  Op op = trace.op(id);
  op.name = builder.text(trace.text(op.name));
  op.module = builder.text(trace.text(op.module));
  op.start = op.launch = Nanos{-1};
  return op;
}

}  // namespace tidepool
