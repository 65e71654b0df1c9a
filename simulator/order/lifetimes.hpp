// Lifetimes of buffers in any order of a step's ops.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// Ops that a buffer is needed by: it is allocated for the first of them that runs and freed after the last. An order
/// of ops thus changes how long it lives. A buffer that no op uses lives as long as the ops do that were recorded
/// between its alloc and its free, and with the next op if there are none.
class Lifetimes {
 public:
  explicit Lifetimes(const Trace& trace);

  /// Buffers that the step allocates or frees and `op` needs.
  std::span<const std::uint32_t> needed_by(std::uint32_t op) const {
    return std::span{needed_}.subspan(first_[op], first_[op + 1] - first_[op]);
  }
  /// How many ops need a buffer.
  std::uint32_t count(std::uint32_t buffer) const { return counts_[buffer]; }
  /// Bytes that live throughout.
  Bytes always() const { return always_; }
  /// Largest sum of live bytes when the ops run in this order. O(uses).
  Bytes peak(std::span<const std::uint32_t> order) const;
  /// The same for every op: live bytes while it runs, by position in the order.
  std::vector<Bytes> load(std::span<const std::uint32_t> order) const;
  /// The step in this order, every buffer allocated when it is first needed and freed when it is needed no more.
  /// @param rule  that made the order: what the new trace says of itself under "order"
  Trace in_order(std::span<const std::uint32_t> order, const std::string& rule) const;

  const Trace& trace() const { return trace_; }

 private:
  const Trace& trace_;
  std::vector<std::uint32_t> needed_, first_;  // by op
  std::vector<std::uint32_t> counts_;          // by buffer
  Bytes always_;
};

}  // namespace tidepool
