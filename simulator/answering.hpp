// Planners that end with another policy as their answer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simulator/policy.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

/// A policy that finds another one when it is asked for its draft, and does from then on what that one does.
class Answering : public Policy {
 public:
  std::unique_ptr<Pool> bring_pool() override { return answer_->bring_pool(); }
  void start(const View& view) override { answer_->start(view); }
  void make_room(const View& view, const Request& request, std::vector<Action>& out) override {
    answer_->make_room(view, request, out);
  }
  void before_run(const View& view, OpId op, std::vector<Action>& out) override { answer_->before_run(view, op, out); }
  bool anticipates() const override { return answer_->anticipates(); }
  void before_place(const View& view, const Request& request, std::vector<Action>& out) override {
    answer_->before_place(view, request, out);
  }
  bool watches() const override { return true; }  // asked before there is an answer
  void dropped(const View& view, VersionId v) override {
    if (answer_->watches()) answer_->dropped(view, v);
  }
  void computed(const View& view, std::span<const VersionId> versions) override {
    if (answer_->watches()) answer_->computed(view, versions);
  }
  std::int64_t cost_evaluations() const override { return answer_ ? answer_->cost_evaluations() : 0; }

 protected:
  std::unique_ptr<Policy> answer_;  // of plan_run() on
};

}  // namespace tidepool
