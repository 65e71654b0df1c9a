// Planners that end with another policy as their answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "policies/planning/search/delegating_policy.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/whole_plan.hpp"

namespace tidepool {

/// A policy that looks for another policy when it is asked for its draft. From then on that one, the answer, decides.
class AnsweringPlanner : public DelegatingPolicy, public WholePlanner {
 public:
  using Maker = std::function<std::unique_ptr<Policy>()>;

  std::optional<Plan> whole_plan() override {
    auto* const planner = dynamic_cast<WholePlanner*>(answer_.get());
    return planner != nullptr ? planner->whole_plan() : std::nullopt;
  }

  /// Makes the answer once more, for another run in the same setting, without a new search. Empty until there is an
  /// answer. Outlives this policy, but not the trace.
  std::shared_ptr<const Maker> maker() const { return maker_; }

 protected:
  /// Settles the answer, and returns its draft.
  std::vector<Action> answer_with(Maker maker, const Trace& trace, const RunSpec& spec) {
    *maker_ = std::move(maker);
    answer_ = (*maker_)();
    delegate_to(*answer_);
    return answer_->plan(trace, spec);
  }

 private:
  std::unique_ptr<Policy> answer_;  // of plan() on
  std::shared_ptr<Maker> maker_ = std::make_shared<Maker>();
};

}  // namespace tidepool
