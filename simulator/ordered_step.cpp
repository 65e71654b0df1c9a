#include "simulator/ordered_step.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/step/dependencies.hpp"
#include "traces/step/lifetimes.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

Dependencies dependencies_or_refuse(const Trace& trace) {
  try {
    return dependencies_of(trace);
  } catch (const InputError& error) {
    throw PlanError{fmt::format("order: {}", error.what())};
  }
}

/// Refuses an order that does not have every op once, or does not keep the dependencies.
void check(const StepOrder& order, const Trace& trace) {
  const std::size_t count = trace.ops().size();
  std::vector<std::size_t> position(count, count);
  bool each_once = order.ops.size() == count;
  for (std::size_t i = 0; each_once && i < count; ++i) {
    each_once = order.ops[i] < count && position[order.ops[i]] == count;
    if (each_once) position[order.ops[i]] = i;
  }
  if (!each_once)
    throw PlanError{fmt::format("order: {} ops; expected each of the step's {} once", order.ops.size(), count)};
  const Dependencies dependencies = dependencies_or_refuse(trace);
  for (std::uint32_t op = 0; op < count; ++op)
    for (const std::uint32_t before : dependencies.before[op])
      if (position[before] > position[op])
        throw PlanError{fmt::format("order: op {} before op {}; expected op {} first: op {} depends on it", op, before,
                                    before, op)};
}

}  // namespace

OrderedStep::OrderedStep(const Trace& recorded, StepOrder order) : order_{std::move(order)}, given_{&recorded} {
  if (order_.apart) apart_.emplace(split_foreach(recorded));
  const Trace& from = this->recorded();
  check(order_, from);
  trace_.emplace(Lifetimes{from}.in_order(order_.ops, order_.rule));
  versions_.resize(trace_->versions().size());
  for (std::size_t i = 0; i < order_.ops.size(); ++i) {
    const std::span uses = trace_->uses(OpId{i}), recorded_uses = from.uses(OpId{order_.ops[i]});
    for (std::size_t k = 0; k < uses.size(); ++k) {
      if (uses[k].in.valid()) versions_[uses[k].in.index()] = recorded_uses[k].in;
      if (uses[k].out.valid()) versions_[uses[k].out.index()] = recorded_uses[k].out;
    }
  }
  for (std::size_t i = 0; i < from.outputs().size(); ++i) versions_[trace_->outputs()[i].index()] = from.outputs()[i];
}

StepOrder step_order(OpOrder order, bool apart) {
  const bool divided = apart && order.rule == "recorded";
  return {divided ? "divided" : std::move(order.rule), apart, std::move(order.ops)};
}

bool can_be_reordered(const Trace& trace) {
  return trace.data().streams.size() == 1 && !trace.ops().empty() && summarize(trace).iterations <= 1;
}

}  // namespace tidepool
