// Content that a run loses for good, and what can no longer be recomputed then.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/engine/policy_calls.hpp"
#include "simulator/state.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Keeps VersionState::regenerable true. A loss is told in two steps: before() while the content is still there,
/// after() once it is gone. LossTracking by one op at one time are one: next() begins another.
class LossTracking {
 public:
  /// @param op  the op of the program that is being prepared or run
  LossTracking(const Trace& trace, std::vector<VersionState>& states, const std::uint32_t& op, PolicyCalls& policies)
      : trace_{trace},
        states_{states},
        op_{op},
        policies_{policies},
        lost_(trace.versions().size()),
        told_(trace.ops().size()) {}

  void start_iteration() {
    lost_.assign(lost_.size(), false);
    anything_dropped_ = false;
  }
  void next() { ++loss_; }
  /// Content that could be recomputed has gone: before that, nothing can be lost with another.
  void note_drop() { anything_dropped_ = true; }

  bool anything_dropped() const { return anything_dropped_; }

  /// What the program still wants and could only be recomputed from `v`, which is about to be lost: to be brought back
  /// now. What is there already and depends on `v` must stay from now on.
  std::vector<VersionId> before(VersionId v);
  /// `v` is gone: what was made from it directly cannot be recomputed any more, and what of that is absent is gone too.
  void after(VersionId v);

 private:
  /// Whether what an op made must be told of the present loss; not twice, however many of its inputs are lost at once.
  bool tells(OpId reader) { return std::exchange(told_[reader.index()], loss_) != loss_; }

  const Trace& trace_;
  std::vector<VersionState>& states_;
  const std::uint32_t& op_;
  PolicyCalls& policies_;
  std::vector<bool> lost_;           // by version: gone and not regenerable
  std::vector<std::uint32_t> told_;  // by op: the last loss that what it made was told of
  std::uint32_t loss_ = 0;
  bool anything_dropped_ = false;
};

}  // namespace tidepool
