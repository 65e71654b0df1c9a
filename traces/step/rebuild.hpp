// Copy of the ops of a trace into a new trace, in another order.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "traces/builder.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Appends buffers and ops of a trace to a new one. Ops may come in any order in which each op reads the same versions
/// as in the old trace.
class Rebuild {
 public:
  /// Outputs of the new trace: all of the old one, or those whose buffers have not been freed.
  enum class Outputs : std::uint8_t { kAll, kAlive };

  /// @param left_out  by buffer from before the step: whether it is left out; empty: none is
  explicit Rebuild(const Trace& trace, const std::vector<bool>& left_out = {});

  void alloc(BufferId buffer);
  void free(BufferId buffer) { builder_.free(buffer_of(buffer)); }
  /// Runs `op` with all of its uses.
  void run(OpId op) { run(op, trace_.uses(op), trace_.op(op).duration); }
  /// Runs a part of `op`: some of its uses, for a duration.
  void run(OpId op, std::span<const Use> uses, Nanos duration);
  std::map<std::string, std::string>& meta() { return builder_.meta(); }
  /// Ends the trace.
  Trace finish(Outputs outputs = Outputs::kAll);

 private:
  BufferId buffer_of(BufferId old) const { return buffers_[old.index()]; }

  const Trace& trace_;
  TraceBuilder builder_;
  std::vector<BufferId> buffers_;    // by old buffer
  std::vector<VersionId> versions_;  // by old version: none before it is made
};

}  // namespace tidepool
