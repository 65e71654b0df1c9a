// Lifetimes of buffers in any order of a step's ops.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The ops that need each buffer. A buffer is allocated for the first of them that runs and freed after the last, so
/// its lifetime depends on the order. A buffer that no op uses is needed by the ops that were recorded between its
/// alloc and its free; if there are none, by the next op.
class Lifetimes {
 public:
  explicit Lifetimes(const Trace& trace);

  /// Buffers that the step allocates or frees and `op` needs.
  std::span<const std::uint32_t> needed_by(std::uint32_t op) const {
    return std::span{needed_}.subspan(first_[op], first_[op + 1] - first_[op]);
  }
  /// The number of ops that need a buffer.
  std::uint32_t count(std::uint32_t buffer) const { return counts_[buffer]; }
  /// Bytes of buffers that live during the whole step.
  Bytes always() const { return always_; }
  /// Largest sum of live bytes when the ops run in this order. O(uses).
  Bytes peak(std::span<const std::uint32_t> order) const;
  /// Live bytes while each op runs, by position in the order.
  std::vector<Bytes> load(std::span<const std::uint32_t> order) const;
  /// The step in this order, with every buffer allocated when it is first needed and freed after its last use.
  /// @param rule  the rule that made the order, for the new trace's metadata ("order")
  Trace in_order(std::span<const std::uint32_t> order, const std::string& rule) const;

  const Trace& trace() const { return trace_; }

 private:
  const Trace& trace_;
  std::vector<std::uint32_t> needed_, first_;  // by op
  std::vector<std::uint32_t> counts_;          // by buffer
  Bytes always_;
};

}  // namespace tidepool
