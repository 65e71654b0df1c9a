// Copies of buffers and ops for another trace: their names become texts of that trace. Stream ids stay as they are, so
// the builder must have the streams of the trace, in the same order.
#pragma once

#include "traces/builder.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The copy has `born_before` and `outlives` unset. TraceBuilder sets the first in existing(), and the second in
/// finish() for buffers that were not freed.
inline Buffer copied(TraceBuilder& builder, const Trace& trace, BufferId id) {
  Buffer buffer = trace.buffer(id);
  buffer.name = builder.text(trace.text(buffer.name));
  if (buffer.line.valid()) buffer.line = builder.text(trace.text(buffer.line));
  buffer.born_before = buffer.outlives = false;
  return buffer;
}

/// The copy has no recorded times: it begins after the previous op. Its duration is the same.
inline Op copied(TraceBuilder& builder, const Trace& trace, OpId id) {
  Op op = trace.op(id);
  op.name = builder.text(trace.text(op.name));
  op.module = builder.text(trace.text(op.module));
  if (op.line.valid()) op.line = builder.text(trace.text(op.line));
  op.start = op.launch = Nanos{-1};
  return op;
}

}  // namespace tidepool
