// A draft of copies that a policy wants, op by op.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Collects copies, each issued before an op. Copies before the same op keep the order of the calls. Copies after the
/// last op are left out.
class CopyDraft {
 public:
  explicit CopyDraft(const Trace& trace) : ops_{trace.ops().size()} {}

  /// Copies `v` to the host; it also stays on the device.
  void copy_out(std::uint32_t op, VersionId v) {
    add(Verb::kSwapOut, op, v);
    kept_[v] = actions_.size();
    add(Verb::kSwapIn, op, v);  // a swap-in during the swap-out keeps the version on the device
  }
  /// Makes the program wait until copies of `v` have ended.
  void await(std::uint32_t op, VersionId v) { add(Verb::kAwait, op, v); }
  /// Frees `v` on the device once its copy to the host has ended. If there is no copy, issues it before `op`.
  void release(std::uint32_t op, VersionId v) {
    const Action keeps{.verb = Verb::kSwapIn, .before = OpId{op}, .subject = v.value()};
    if (const auto kept = kept_.find(v);
        kept != kept_.end() && kept->second < actions_.size() && actions_[kept->second] == keeps)
      actions_[kept->second].before = {};  // take() leaves it out: the copy may free the version when it ends
    add(Verb::kSwapOut, op, v);
  }
  /// Copies `v` back to the device.
  void copy_back(std::uint32_t op, VersionId v) { add(Verb::kSwapIn, op, v); }

  /// The collected copies, sorted by op. The draft may not be used afterwards.
  std::vector<Action> take() {
    std::erase_if(actions_, [](const Action& action) { return !action.before.valid(); });
    std::stable_sort(actions_.begin(), actions_.end(),
                     [](const Action& a, const Action& b) { return a.before < b.before; });
    return std::move(actions_);
  }

 private:
  void add(Verb verb, std::uint32_t op, VersionId v) {
    if (op < ops_) actions_.push_back({.verb = verb, .before = OpId{op}, .subject = v.value()});
  }

  std::size_t ops_;
  std::vector<Action> actions_;
  std::map<VersionId, std::size_t> kept_;  // by version: the index in actions_ of the action that keeps it
};

}  // namespace tidepool
