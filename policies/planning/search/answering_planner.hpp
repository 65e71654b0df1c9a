// Planners whose result is another policy.
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

/// A policy whose plan() searches for another policy, the answer. From then on, the answer decides.
class AnsweringPlanner : public DelegatingPolicy, public WholePlanner {
 public:
  using Maker = std::function<std::unique_ptr<Policy>()>;

  std::optional<Plan> whole_plan() override {
    auto* const planner = dynamic_cast<WholePlanner*>(answer_.get());
    return planner != nullptr ? planner->whole_plan() : std::nullopt;
  }

  /// A function that makes the answer again, for another run of the same spec, without a new search. Empty until there
  /// is an answer. It may outlive this policy, but not the trace.
  std::shared_ptr<const Maker> maker() const { return maker_; }

 protected:
  /// Sets the answer and returns its draft.
  std::vector<Action> answer_with(Maker maker, const Trace& trace, const RunSpec& spec) {
    *maker_ = std::move(maker);
    answer_ = (*maker_)();
    delegate_to(*answer_);
    return answer_->plan(trace, spec);
  }

 private:
  std::unique_ptr<Policy> answer_;  // set by plan()
  std::shared_ptr<Maker> maker_ = std::make_shared<Maker>();
};

}  // namespace tidepool
