// Plans of copies, drops and runs, executed as far as the run allows.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "policies/planning/gaps/gap_draft.hpp"
#include "policies/planning/remat/draft.hpp"

namespace tidepool {

/// Copies, which plan() returns; others: drops and runs, which are issued when they are due. Both are sorted.
struct PagedActions {
  std::vector<Action> copies, others;
};

/// The base of static planners that copy: plan() returns the copies, and drops and runs are issued when they are due.
class PagedPolicy : public DraftPolicy {
 protected:
  /// @param actions_of  actions_of(early): the actions if swap-ins are requested early (true) or late (false)
  /// @return  the copies of the better actions (early ones unless late ones are better); their drops and runs are
  ///          issued from now on
  template <class ActionsOf>
  std::vector<Action> follow_better(const Trace& trace, const RunSpec& spec, const ActionsOf& actions_of) {
    const auto run = [&](bool early) { return judge(trace, spec, std::make_unique<Paged>(actions_of(early))); };
    PagedActions actions = actions_of(!better(run(false), run(true)));
    draft_ = Draft{std::move(actions.others)};
    return std::move(actions.copies);
  }

 private:
  class Paged final : public DraftPolicy {
   public:
    explicit Paged(PagedActions actions) : copies_{std::move(actions.copies)} {
      draft_ = Draft{std::move(actions.others)};
    }
    std::vector<Action> plan(const Trace&, const RunSpec&) override { return copies_; }

   private:
    std::vector<Action> copies_;
  };
};

}  // namespace tidepool
