// A policy that executes a given plan.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "policies/planning/search/run_places.hpp"
#include "simulator/policy.hpp"
#include "simulator/whole_plan.hpp"

namespace tidepool {

/// Executes a whole plan that a search has found.
class BestPlan final : public Policy, public WholePlanner {
 public:
  using Places = std::vector<FollowedPool::Place>;

  /// @param places  of the plan, request by request; if none, the run's pool chooses them
  explicit BestPlan(std::shared_ptr<const Plan> plan, std::shared_ptr<const Places> places = {})
      : plan_{std::move(plan)}, places_{std::move(places)} {}

  std::unique_ptr<Pool> bring_pool() override {
    if (!places_) return {};
    return std::make_unique<FollowedPool>(places_, std::make_shared<std::size_t>());
  }
  std::optional<Plan> whole_plan() override { return *plan_; }

 private:
  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const Places> places_;
};

}  // namespace tidepool
