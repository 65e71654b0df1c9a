// A policy that lets others answer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "simulator/policy.hpp"
#include "simulator/run.hpp"
#include "simulator/tide_remat/counted_pool.hpp"

namespace tidepool {

/// Answers as another policy does, on a pool of its own if it is given one, and in the first iteration as yet another
/// one if it is given that. Counts in the log how often it is asked to make room.
class StandIn final : public Policy {
 public:
  explicit StandIn(std::unique_ptr<Policy> policy, std::unique_ptr<Pool> pool = {}, std::unique_ptr<Policy> first = {},
                   std::shared_ptr<PlaceLog> log = {})
      : policy_{std::move(policy)}, first_{std::move(first)}, pool_{std::move(pool)}, log_{std::move(log)} {}

  std::vector<Action> plan_run(const Trace& trace, const RunSpec& spec) override {
    if (!first_) return policy_->plan_run(trace, spec);
    policy_->plan_run(trace, spec);  // a draft would be followed from the first iteration on
    return first_->plan_run(trace, spec);
  }
  std::unique_ptr<Pool> bring_pool() override { return std::move(pool_); }
  void start(const View& view) override {
    now_ = iteration_++ == 0 && first_ ? first_.get() : policy_.get();
    now_->start(view);
  }
  void make_room(const View& view, const Request& request, std::vector<Action>& out) override {
    if (log_) ++log_->asked;
    now_->make_room(view, request, out);
  }
  void before_run(const View& view, OpId op, std::vector<Action>& out) override { now_->before_run(view, op, out); }
  bool anticipates() const override { return policy_->anticipates(); }
  void before_place(const View& view, const Request& request, std::vector<Action>& out) override {
    now_->before_place(view, request, out);
  }
  bool watches() const override { return true; }
  void dropped(const View& view, VersionId v) override {
    if (now_->watches()) now_->dropped(view, v);
  }
  void computed(const View& view, std::span<const VersionId> versions) override {
    if (now_->watches()) now_->computed(view, versions);
  }
  std::int64_t cost_evaluations() const override {
    return policy_->cost_evaluations() + (first_ ? first_->cost_evaluations() : 0);
  }

 private:
  std::unique_ptr<Policy> policy_, first_;
  std::unique_ptr<Pool> pool_;
  std::shared_ptr<PlaceLog> log_;
  Policy* now_ = nullptr;
  int iteration_ = 0;
};

}  // namespace tidepool
