// Copying the ops of a trace into another one, in another order.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "traces/builder.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Appends buffers and ops of a trace to a new one. Ops may come in any order that keeps what they read.
class Rebuild {
 public:
  explicit Rebuild(const Trace& trace);

  void alloc(BufferId buffer);
  void free(BufferId buffer) { builder_.free(buffer_of(buffer)); }
  /// Runs `op` with all of its uses.
  void run(OpId op) { run(op, trace_.uses(op), trace_.op(op).duration); }
  /// Runs a part of `op`: these of its uses, for so long.
  void run(OpId op, std::span<const Use> uses, Nanos duration);
  std::map<std::string, std::string>& meta() { return builder_.meta(); }
  /// Ends the trace; what the old one hands on, the new one does.
  Trace finish();

 private:
  BufferId buffer_of(BufferId old) const { return buffers_[old.index()]; }
  Buffer spec_of(BufferId old);

  const Trace& trace_;
  TraceBuilder builder_;
  std::vector<BufferId> buffers_;    // by old buffer
  std::vector<VersionId> versions_;  // by old version: none before it is made
};

}  // namespace tidepool
