// Content that a run loses for good, and content that can no longer be recomputed after that.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/engine/policy_calls.hpp"
#include "simulator/state.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Keeps VersionState::regenerable up to date. A loss is reported in two steps: before() while the content is still
/// there, after() once it is gone. All losses by one op at one time count as one loss; next() begins the next loss.
class LossTracking {
 public:
  /// @param op  the op of the program that is prepared or run
  LossTracking(const Trace& trace, std::vector<VersionState>& states, const std::uint32_t& op, PolicyCalls& policies)
      : trace_{trace},
        states_{states},
        op_{op},
        policies_{policies},
        lost_(trace.versions().size()),
        told_(trace.ops().size()),
        outputs_(trace.ops().size()) {}

  void start_iteration() {
    lost_.assign(lost_.size(), false);
    outputs_.assign(outputs_.size(), Outputs::kOther);
    anything_dropped_ = false;
  }
  void next() { ++loss_; }
  /// Records a drop, or a free of content that could be recomputed. Until the first of them, a loss affects no other
  /// content.
  void note_drop() { anything_dropped_ = true; }

  /// Records that `v` is no longer on the device. Called before after(), if it is lost.
  void note_absent(VersionId v) {
    if (const OpId producer = trace_.version(v).producer; producer.valid())
      if (Outputs& outputs = outputs_[producer.index()]; outputs == Outputs::kSettled)
        outputs = Outputs::kNotRegenerable;
  }

  bool anything_dropped() const { return anything_dropped_; }

  /// The versions to bring back now: the program still needs them, and they could only be recomputed from `v`, which is
  /// about to be lost. From now on, versions that depend on `v` do not count as regenerable.
  std::vector<VersionId> before(VersionId v);
  /// Records that `v` is gone. Versions made directly from it cannot be recomputed any more; absent ones are gone too.
  void after(VersionId v);

 private:
  /// What is known of all outputs of an op that has run, so that later losses of its inputs need not visit them: an op
  /// that updates all parameters has hundreds of inputs and outputs.
  enum class Outputs : std::uint8_t {
    kOther,
    kNotRegenerable,
    kSettled,  ///< and each of them is present or recorded as gone
  };

  /// Whether the present loss must still be recorded for the outputs of an op: only once, even if several inputs are
  /// lost.
  bool tells(OpId reader) { return std::exchange(told_[reader.index()], loss_) != loss_; }

  const Trace& trace_;
  std::vector<VersionState>& states_;
  const std::uint32_t& op_;
  PolicyCalls& policies_;
  std::vector<bool> lost_;           // by version: absent and not regenerable
  std::vector<std::uint32_t> told_;  // by op: the last loss that was recorded for its outputs
  std::vector<Outputs> outputs_;     // by op
  std::uint32_t loss_ = 0;
  bool anything_dropped_ = false;
};

}  // namespace tidepool
