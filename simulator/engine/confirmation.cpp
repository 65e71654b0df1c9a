#include "simulator/engine/confirmation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "simulator/engine/boundary.hpp"
#include "simulator/engine/checker.hpp"
#include "simulator/engine/timeline.hpp"
#include "simulator/ordered_step.hpp"
#include "simulator/run.hpp"
#include "simulator/state.hpp"

namespace tidepool {

std::vector<Totals> costs_of_iterations(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  const PlannedStep step{trace, plan};
  Replay replay{step.trace(), spec};
  replay.apply(plan.actions);
  return replay.finish();
}

Totals whole_cost(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  return sum_of(costs_of_iterations(trace, spec, plan));
}

Totals replay(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  const std::vector<Totals> iterations = costs_of_iterations(trace, spec, plan);
  return mean_of_last(iterations, std::clamp(plan.cycle, 1, static_cast<int>(iterations.size())));
}

struct Replay::Executor {
  Executor(const Trace& trace, const RunSpec& spec)
      : checker{trace, spec}, timeline{trace, spec.machine, spec.assume, states, spec.capacity} {}

  Checker checker;
  std::vector<VersionState> states;
  Timeline timeline;
  std::vector<Totals> iterations;  // those that have ended
};

Replay::Replay(const Trace& trace, const RunSpec& spec) : executor_{std::make_unique<Executor>(trace, spec)} {}
Replay::~Replay() = default;

void Replay::apply(std::span<const Action> actions) {
  for (const Action& action : actions) {
    executor_->checker.check(action);
    if (action.verb == Verb::kNext) executor_->iterations.push_back(executor_->timeline.totals());
    executor_->timeline.apply(action);
  }
}

std::vector<Totals> Replay::finish() const {
  executor_->checker.finish();
  std::vector<Totals> iterations = executor_->iterations;
  iterations.push_back(executor_->timeline.totals());
  return iterations;
}

void Confirmation::drop_held() {
  plan_.actions.resize(held_from_.value());
  held_from_.reset();
}

void Confirmation::execute() {
  if (!replay_) replay_.emplace(trace_, spec_);
  const std::size_t end = held_from_.value_or(plan_.actions.size());
  replay_->apply(std::span{plan_.actions}.first(end).subspan(executed_));
  executed_ = end;
}

void Confirmation::finish(std::span<const Totals> iterations) {
  execute();
  const std::vector<Totals> replayed = replay_->finish();
  replay_.reset();
  if (replayed.size() != iterations.size())
    throw PlanError{fmt::format("it has {} iterations, and the run had {}", replayed.size(), iterations.size())};
  const auto [other, own] = std::mismatch(replayed.begin(), replayed.end(), iterations.begin());
  if (other == replayed.end()) return;
  const std::string which = replayed.size() == 1 ? "it" : fmt::format("its iteration {}", other - replayed.begin() + 1);
  if (other->makespan != own->makespan)
    throw PlanError{
        fmt::format("{} takes {}, and the run took {}", which, to_text(other->makespan), to_text(own->makespan))};
  throw PlanError{fmt::format("the totals of {} differ from those of the run", which)};
}

Plan Confirmation::take_plan(int cycle) {
  if (!keep_plan_) return {};
  plan_.cycle = cycle;
  return std::move(plan_);
}

}  // namespace tidepool
