// Policies that forward their decisions to another policy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/policy.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

/// A policy that forwards all calls but reorder(), plan() and watches() to its target. Derived policies choose the
/// target, and override the calls that they answer themselves. There must be a target before the first iteration
/// starts.
class DelegatingPolicy : public Policy, public Explainer {
 public:
  std::unique_ptr<Pool> bring_pool() override { return target_->bring_pool(); }
  void start(const View& view) override { target_->start(view); }
  std::int64_t changes_of_mind() const override { return target_->changes_of_mind(); }
  void make_room(const View& view, const Request& request, std::vector<Action>& out) override {
    target_->make_room(view, request, out);
  }
  Ranking ranking(const View& view, const Request& request) override { return ranking_of(*target_, view, request); }
  bool follows_plan() const override { return tidepool::follows_plan(*target_); }
  void before_run(const View& view, OpId op, std::vector<Action>& out) override { target_->before_run(view, op, out); }
  bool anticipates() const override { return target_->anticipates(); }
  void before_place(const View& view, const Request& request, std::vector<Action>& out) override {
    target_->before_place(view, request, out);
  }
  bool watches() const override { return true; }  // may be called before there is a target
  void dropped(const View& view, VersionId v) override {
    if (target_->watches()) target_->dropped(view, v);
  }
  void computed(const View& view, std::span<const VersionId> versions) override {
    if (target_->watches()) target_->computed(view, versions);
  }
  std::int64_t cost_evaluations() const override { return target_ != nullptr ? target_->cost_evaluations() : 0; }

 protected:
  /// `target` must live until the next call of this function, or as long as this policy.
  void delegate_to(Policy& target) { target_ = &target; }

 private:
  Policy* target_ = nullptr;
};

}  // namespace tidepool
