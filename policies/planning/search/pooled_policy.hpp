// A policy that brings its own pool.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "policies/planning/search/counted_pool.hpp"
#include "policies/planning/search/delegating_policy.hpp"
#include "simulator/run_spec.hpp"

namespace tidepool {

/// Delegates to `policy`, and brings `pool` if it is not null. `first` decides in the first iteration if it is not
/// null. `log` counts the shortages of the run if it is not null.
class PooledPolicy final : public DelegatingPolicy {
 public:
  explicit PooledPolicy(std::unique_ptr<Policy> policy, std::unique_ptr<Pool> pool = {},
                        std::unique_ptr<Policy> first = {}, std::shared_ptr<PlaceLog> log = {})
      : policy_{std::move(policy)}, first_{std::move(first)}, pool_{std::move(pool)}, log_{std::move(log)} {
    delegate_to(*policy_);
  }

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    if (!first_) return policy_->plan(trace, spec);
    policy_->plan(trace, spec);  // its draft is left out: the run would follow it in the first iteration, too
    return first_->plan(trace, spec);
  }
  std::unique_ptr<Pool> bring_pool() override { return std::move(pool_); }
  void start(const View& view) override {
    delegate_to(iteration_++ == 0 && first_ ? *first_ : *policy_);
    DelegatingPolicy::start(view);
  }
  std::int64_t changes_of_mind() const override {
    return (first_ && iteration_ > 1 ? 1 : 0) + DelegatingPolicy::changes_of_mind();
  }
  void make_room(const View& view, const Request& request, std::vector<Action>& out) override {
    if (log_) ++log_->asked;
    DelegatingPolicy::make_room(view, request, out);
  }
  std::int64_t cost_evaluations() const override {
    return policy_->cost_evaluations() + (first_ ? first_->cost_evaluations() : 0);
  }

 private:
  std::unique_ptr<Policy> policy_, first_;
  std::unique_ptr<Pool> pool_;
  std::shared_ptr<PlaceLog> log_;
  int iteration_ = 0;
};

}  // namespace tidepool
