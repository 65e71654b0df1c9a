// The second execution of a run's plan, and what it costs: a run is `ok` only if both executions agree.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "simulator/plan.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Executes actions in issue order with its own Checker and Timeline. Independent of the driver, the pool and the
/// policies that chose the actions.
class Replay {
 public:
  Replay(const Trace& trace, const RunSpec& spec);
  ~Replay();

  /// @throws PlanError  if an action cannot be carried out; nothing may be applied afterwards
  void apply(std::span<const Action> actions);
  /// The cost of each iteration; peaks and `actions` include earlier iterations. Call after the last action.
  /// @throws PlanError  if the step is not complete
  std::vector<Totals> finish() const;

 private:
  struct Executor;
  std::unique_ptr<Executor> executor_;
};

/// Records the actions of a run, and executes them if the run ends well. A run of millions of actions is executed in
/// parts while it goes on, so that the list stays bounded. If a run ends early, the actions of its last part are not
/// executed.
class Confirmation {
 public:
  /// @param keep_plan  whether take_plan() will be called
  Confirmation(const Trace& trace, const RunSpec& spec, bool keep_plan)
      : trace_{trace}, spec_{spec}, keep_plan_{keep_plan} {
    plan_.actions.reserve(std::min(kPiece, 4 * trace.ops().size()));
  }

  /// @return  the action in the list, valid until the next one is added
  const Action& add(Verb verb, OpId before, std::uint32_t subject, Bytes offset, Bytes size) {
    if (!keep_plan_ && !held_from_ && executed_ == plan_.actions.size()) {
      plan_.actions.clear();
      executed_ = 0;
    }
    // Set field by field: copying an Action that was just written would make the processor wait.
    Action& action = plan_.actions.emplace_back();
    action.verb = verb, action.before = before, action.subject = subject;
    action.offset = offset, action.size = size;
    return action;
  }
  /// Whether the list is long enough for execute().
  bool full() const { return !held_from_ && plan_.actions.size() - executed_ >= kPiece; }
  /// Holds the actions that are added from here on: they may be discarded, so none is executed before accept_held().
  void hold() { held_from_ = plan_.actions.size(); }
  void accept_held() { held_from_.reset(); }
  void drop_held();
  /// Executes all actions that are not held. @throws PlanError  as finish()
  void execute();
  /// @param iterations  the cost of each iteration, as the run computed it
  /// @throws PlanError  if the plan cannot be executed, or an iteration has other totals than in the run
  void finish(std::span<const Totals> iterations);

  /// All actions; the last `cycle` iterations repeat. Empty unless the plan is kept.
  Plan take_plan(int cycle);

 private:
  static constexpr std::size_t kPiece = 1 << 16;

  const Trace& trace_;
  const RunSpec& spec_;
  const bool keep_plan_;
  Plan plan_;
  std::size_t executed_ = 0;              // executed actions at the front of plan_; add() drops them if all are
  std::optional<std::size_t> held_from_;  // the first action that may be dropped
  std::optional<Replay> replay_;
};

/// Totals of every iteration of a plan, checked and executed as in replay(), which returns the mean of the last ones.
/// Peaks and `actions` are those of all iterations so far.
/// @throws PlanError  as replay() does
std::vector<Totals> costs_of_iterations(const Trace& trace, const RunSpec& spec, const Plan& plan);

/// The same, all iterations together: times, copied bytes and counts are sums.
Totals whole_cost(const Trace& trace, const RunSpec& spec, const Plan& plan);

}  // namespace tidepool
