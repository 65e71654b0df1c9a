// A step whose ops run in another order, and the step that a plan names.
#pragma once

#include <optional>
#include <vector>

#include "simulator/plan.hpp"
#include "traces/step/op_order.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A recorded step and the same step in another order, with the ids of both. A buffer is allocated for the first op
/// that uses it and freed after the last one.
class OrderedStep {
 public:
  /// @param recorded  outlives this object
  /// @throws PlanError  "order: 91 ops; expected each of the step's 92 once",
  ///                    "order: op 4 before op 2; expected op 2 first: op 4 depends on it"
  OrderedStep(const Trace& recorded, StepOrder order);

  const StepOrder& order() const { return order_; }
  /// The step in the recorded order, with ops on lists of tensors divided if the order says so.
  const Trace& recorded() const { return apart_ ? *apart_ : *given_; }
  const Trace& trace() const { return *trace_; }
  /// The op of recorded() for an op of trace(), and the same for versions. A version that no op uses may have none.
  OpId recorded_op(OpId op) const { return OpId{order_.ops[op.index()]}; }
  VersionId recorded_version(VersionId v) const { return versions_[v.index()]; }

 private:
  StepOrder order_;
  const Trace* given_;
  std::optional<Trace> apart_, trace_;
  std::vector<VersionId> versions_;
};

/// An order that a rule has made, for a plan. Its rule is "divided" if the order only divides ops on lists of tensors.
/// @param apart  whether the ops are those that split_foreach() gives
StepOrder step_order(OpOrder order, bool apart);

/// Whether OrderedStep can put the ops of a step into another order: it has ops, one stream and at most one iteration.
bool can_be_reordered(const Trace& trace);

/// The step whose ops and versions the actions of a plan name: the recorded step, or the step in the plan's order.
class PlannedStep {
 public:
  /// @param recorded  outlives this object
  /// @throws PlanError  as OrderedStep does
  PlannedStep(const Trace& recorded, const Plan& plan) : recorded_{recorded} {
    if (plan.order) ordered_.emplace(recorded, *plan.order);
  }
  const Trace& trace() const { return ordered_ ? ordered_->trace() : recorded_; }
  const OrderedStep* ordered() const { return ordered_ ? &*ordered_ : nullptr; }

 private:
  const Trace& recorded_;
  std::optional<OrderedStep> ordered_;
};

}  // namespace tidepool
