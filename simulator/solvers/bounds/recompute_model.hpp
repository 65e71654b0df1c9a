// A trace as input of bounds on recomputation: the versions that must be in memory at each time, and the cost to
// recompute them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Demands on every plan without swaps. An instant is the moment at which an op of the program has run for the first
/// time. The model demands less than real plans must do; it assumes that
///   - the bytes that a buffer holds when it is allocated come back when it is allocated again,
///   - a version that the program has freed or overwritten may be kept, or recomputed, in a place of its own,
///   - random ops can be run again at the cost of their first run,
///   - replaying views costs nothing.
/// Content from before the step, and content that sources bring, cannot be recomputed.
class RecomputeModel {
 public:
  /// @param trace   outlives the model
  /// @param stream  ops on this stream cost their durations, all others cost nothing: a step takes at least the
  ///                recomputation of one lane, but not that of several lanes together
  RecomputeModel(const Trace& trace, const Assumptions& assume, StreamId stream);

  /// The stream whose ops take the most time in all, the first one of equals.
  static StreamId busiest_stream(const Trace& trace);

  static constexpr std::int32_t kBeforeAll = -1;  ///< made before the first op
  static constexpr std::int32_t kNever = -2;

  struct Item {                    // a root version
    std::int32_t made = kNever;    ///< op that makes it, or kBeforeAll; kNever: the model demands nothing of it
    std::int32_t needed = kNever;  ///< the last op that reads it; ops() for the end of the step
    bool replaceable = false;      ///< running `made` again brings it back
    std::int64_t bytes = 0;
    std::int64_t cost = 0;  ///< its share in the cost of its op, in proportion to its bytes
  };

  const Trace& trace() const { return trace_; }
  std::int32_t ops() const { return static_cast<std::int32_t>(trace_.ops().size()); }
  std::int64_t cost(OpId op) const { return costs_[op.index()]; }
  /// Sum of the costs of all ops, each once.
  Nanos work() const;
  const Item& item(VersionId v) const { return items_[v.index()]; }
  std::span<const Item> items() const { return items_; }
  /// Root versions that an op reads and of which the model demands something, each once.
  std::span<const VersionId> inputs(OpId op) const {
    return std::span{inputs_}.subspan(first_input_[op.index()],
                                      first_input_[op.index() + 1] - first_input_[op.index()]);
  }
  /// The first op after `instant` that reads a version, ops() if only the end of the step needs it, or kNever.
  std::int32_t next_need(VersionId v, std::int32_t instant) const;
  /// Bytes that no plan can use otherwise at an instant, or at the end of the step for ops().
  Bytes taken(std::int32_t instant) const { return taken_[static_cast<std::size_t>(instant)]; }
  /// Versions in the working set of an instant.
  std::span<const VersionId> held(std::int32_t instant) const {
    const auto i = static_cast<std::size_t>(instant);
    return std::span{held_}.subspan(first_held_[i], first_held_[i + 1] - first_held_[i]);
  }

 private:
  void find_items(const Assumptions& assume);
  void find_needs();

  const Trace& trace_;
  std::vector<std::int64_t> costs_;
  std::vector<Item> items_;
  std::vector<VersionId> inputs_, held_;
  std::vector<std::uint32_t> first_input_, first_held_;
  std::vector<Bytes> taken_;
};

}  // namespace tidepool
