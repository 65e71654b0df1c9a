// Planners that end with another policy as their answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "simulator/policy.hpp"
#include "simulator/pool.hpp"
#include "simulator/run.hpp"

namespace tidepool {

/// A policy that finds another one when it is asked for its draft, and does from then on what that one does.
class Answering : public Policy {
 public:
  using Maker = std::function<std::unique_ptr<Policy>()>;

  /// Makes the answer once more, for another run in the same setting: it need not be found again. Empty until it is
  /// found; outlives this policy, but not the trace.
  std::shared_ptr<const Maker> maker() const { return maker_; }

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
  /// Settles the answer. Its draft.
  std::vector<Action> answer_with(Maker maker, const Trace& trace, const RunSpec& spec) {
    *maker_ = std::move(maker);
    answer_ = (*maker_)();
    return answer_->plan_run(trace, spec);
  }

 private:
  std::unique_ptr<Policy> answer_;  // of plan_run() on
  std::shared_ptr<Maker> maker_ = std::make_shared<Maker>();
};

}  // namespace tidepool
