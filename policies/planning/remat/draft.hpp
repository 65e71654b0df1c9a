// Plans made before the run, carried out as far as the run allows.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "simulator/plan.hpp"
#include "simulator/policy.hpp"
#include "simulator/state.hpp"

namespace tidepool {

/// What a static planner wants done in front of which op: kDrop and kRun, sorted by `before`. Given out op by op, since
/// what may be dropped is known only when it is due: content that could not be recomputed any more stays.
class Draft {
 public:
  Draft() = default;
  explicit Draft(std::vector<Action> actions) : actions_{std::move(actions)} {}

  /// An iteration begins.
  void start() { next_ = 0; }

  /// Appends what is due before `op`. O(1) per action.
  void due(const View& view, OpId op, std::vector<Action>& out) {
    for (; next_ < actions_.size() && actions_[next_].before <= op; ++next_) {
      const Action& action = actions_[next_];
      if (action.verb == Verb::kDrop) {
        const VersionState& state = view.state(VersionId{action.subject});
        if (state.pinned || !state.wanted || !(state.regenerable || state.on_host)) continue;
      }
      out.push_back(action);
    }
  }

 private:
  std::vector<Action> actions_;
  std::size_t next_ = 0;
};

/// What static planners have in common: plan() makes `draft_`, and what is dropped is decided when it is due.
class DraftPolicy : public Policy {
 public:
  void start(const View&) final { draft_.start(); }
  void before_run(const View& view, OpId op, std::vector<Action>& out) final { draft_.due(view, op, out); }

 protected:
  Draft draft_;
};

}  // namespace tidepool
