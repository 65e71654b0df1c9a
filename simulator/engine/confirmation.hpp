// The second execution of a run's plan, without which no run is ok.
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

/// Executes actions in issue order with a Checker and a Timeline of its own. It knows nothing of the driver, the pool
/// and the policies that decided them.
class Replay {
 public:
  Replay(const Trace& trace, const RunSpec& spec);
  ~Replay();

  /// @throws PlanError  if an action cannot be carried out; nothing may be applied afterwards
  void apply(std::span<const Action> actions);
  /// After the last action: what each iteration of the plan costs, with peaks and `actions` of all up to it.
  /// @throws PlanError  if the step is not complete
  std::vector<Totals> finish() const;

 private:
  struct Executor;
  std::unique_ptr<Executor> executor_;
};

/// Takes down what a run does, and executes it when the run has ended well. A run of millions of actions is executed
/// piece by piece, so that the memory for it stays bounded. A run that ends early costs only the list.
class Confirmation {
 public:
  /// @param keep_plan  whether take_plan() is wanted
  Confirmation(const Trace& trace, const RunSpec& spec, bool keep_plan)
      : trace_{trace}, spec_{spec}, keep_plan_{keep_plan} {
    plan_.actions.reserve(std::min(kPiece, 4 * trace.ops().size()));
  }

  /// True: there is enough for execute().
  bool add(const Action& action) {
    plan_.actions.push_back(action);
    return !held_from_ && plan_.actions.size() - executed_ >= kPiece;
  }
  /// What is added from here on may not be part of the plan: nothing of it is executed before accept_held().
  void hold() { held_from_ = plan_.actions.size(); }
  void accept_held() { held_from_.reset(); }
  void drop_held();
  /// Executes what was added so far and is not held. @throws PlanError  as finish()
  void execute();
  /// @param iterations  what the run says that each iteration costs
  /// @throws PlanError  if the plan cannot be executed, or an iteration comes to other totals than in the run
  void finish(std::span<const Totals> iterations);

  /// All actions, the last `cycle` iterations of which repeat; empty unless the plan is kept.
  Plan take_plan(int cycle);

 private:
  static constexpr std::size_t kPiece = 1 << 20;

  const Trace& trace_;
  const RunSpec& spec_;
  const bool keep_plan_;
  Plan plan_;
  std::size_t executed_ = 0;              // actions at the front of plan_
  std::optional<std::size_t> held_from_;  // the first action that may be dropped
  std::optional<Replay> replay_;
};

}  // namespace tidepool
