// Steps of ops that each make one buffer. All uses are known, and the bytes that an order needs have closed forms.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/builder.hpp"

namespace tidepool::tests {

/// Builds a step of ops that each make one buffer, from those of earlier ops.
class Graph {
 public:
  /// Adds an op of 10 ns that reads the buffers of `inputs`, numbers of earlier ops. @return its number
  std::uint32_t op(Bytes size, const std::vector<std::uint32_t>& inputs) {
    std::vector<TraceBuilder::Touch> uses;
    for (const std::uint32_t in : inputs) uses.push_back({outputs_[in], Access::kRead, Evidence::kSchema});
    outputs_.push_back(build_.alloc({.size = size}));
    uses.push_back({outputs_.back(), Access::kWrite, Evidence::kSchema});
    build_.run({.name = build_.text("op"), .duration = 10_ns}, uses);
    return static_cast<std::uint32_t>(outputs_.size() - 1);
  }
  /// Ends the trace. The buffer of the last op is the output of the step; all others are freed after this op.
  Trace finish() {
    outputs_.pop_back();
    for (const BufferId buffer : outputs_) build_.free(buffer);
    return build_.finish();
  }

 private:
  TraceBuilder build_;
  std::vector<BufferId> outputs_;
};

/// Two branches that join. Op X makes 30 B, and op x 10 B from it; op Y makes 20 B, and op y 10 B from it. The recorded
/// order is X, Y, x, y. The last op makes 1 B. All else is freed after it, so 71 B are alive at once.
inline Trace two_branches() {
  Graph graph;
  const std::uint32_t x = graph.op(30_B, {}), y = graph.op(20_B, {}), small_x = graph.op(10_B, {x}),
                      small_y = graph.op(10_B, {y});
  graph.op(1_B, {small_x, small_y});
  return graph.finish();
}

}  // namespace tidepool::tests
