// Plans made before the run, executed as far as the run allows.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/plan.hpp"
#include "simulator/policy.hpp"
#include "simulator/state.hpp"

namespace tidepool {

/// The actions of a static planner: kDrop and kRun, sorted by `before`. They are issued op by op, since a drop can
/// only be checked when it is due: it is left out if the version is pinned, is no longer wanted or could not come back.
class Draft {
 public:
  Draft() = default;
  explicit Draft(std::vector<Action> actions) : actions_{std::move(actions)} {}

  /// Starts an iteration.
  void start() { next_ = 0; }

  /// Appends the actions before `op`. O(1) per action.
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

/// The base of static planners. plan() makes `draft_`; each drop is checked when it is due.
class DraftPolicy : public Policy, public Explainer {
 public:
  void start(const View&) final { draft_.start(); }
  void before_run(const View& view, OpId op, std::vector<Action>& out) final { draft_.due(view, op, out); }
  bool follows_plan() const final { return true; }

 protected:
  Draft draft_;
};

}  // namespace tidepool
