// The bounds "knapsack" and "min-cut": time for ops that must run again, for plans that never swap.
//
// Ops that run again occupy their stream besides the first runs of all its ops. So the step takes at least the time of
// these runs on any one stream, here the one with the most work. Runs on other streams may overlap and do not count.
// knapsack_bounds and RecomputeCut say why so much must run again. Reruns after one instant and after another may be
// the same, so the bound takes the best single instant, or instants in consecutive windows of ops, where only the
// reruns within each window count.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/bounds/critical_path.hpp"
#include "simulator/solvers/bounds/knapsack.hpp"
#include "simulator/solvers/bounds/min_cut.hpp"

namespace tidepool {
namespace {

std::string after_op(const Trace& trace, std::int32_t instant) {
  const OpId op{static_cast<std::uint32_t>(instant)};
  return fmt::format("after op {} ({})", instant, trace.text(trace.op(op).name));
}

std::string where(const RecomputeModel& model, StreamId stream, std::int32_t instant, std::int64_t cost) {
  const Trace& trace = model.trace();
  return fmt::format(
      "{}, ops that take {} must run again{}", after_op(trace, instant), to_text(Nanos{cost}),
      trace.data().streams.size() > 1 ? fmt::format(" on stream {}", trace.data().streams[stream.index()]) : "");
}

std::optional<Bound> knapsack(const BoundQuery& query) {
  if (!query.remat || query.capacity >= ideal_peak(query.trace, query.assume) || !iterations_are_apart(query))
    return std::nullopt;
  const StreamId stream = RecomputeModel::busiest_stream(query.trace);
  const RecomputeModel model{query.trace, query.assume, stream};
  const std::vector<std::int64_t> bounds = knapsack_bounds(model, query.capacity);
  const auto best = std::max_element(bounds.begin(), bounds.end());
  if (best == bounds.end() || *best == 0) return std::nullopt;
  return Bound{.makespan = clock_start(query) + model.work() + Nanos{*best},
               .proof = where(model, stream, static_cast<std::int32_t>(best - bounds.begin()), *best),
               .limited_by = Resource::kRecompute};
}

std::optional<Bound> min_cut(const BoundQuery& query) {
  if (!query.remat || query.capacity >= ideal_peak(query.trace, query.assume)) return std::nullopt;
  const StreamId stream = RecomputeModel::busiest_stream(query.trace);
  const RecomputeModel model{query.trace, query.assume, stream};
  const MinCutPlan plan = min_cut_plan(model, query.capacity);
  if (!plan.feasible && plan.flows == 0) return std::nullopt;  // the bound "working-set" says so
  if (!plan.feasible)
    return Bound{.feasible = false,
                 .proof = fmt::format("{}, the content that is needed later and cannot be recomputed does not fit",
                                      after_op(query.trace, plan.instant))};
  if (plan.bound == 0 || !iterations_are_apart(query)) return std::nullopt;
  std::string proof = where(model, stream, plan.instant, plan.bound);
  if (plan.stretches > 1)
    proof = fmt::format("in {} windows of the step, ops that take {} must run again", plan.stretches,
                        to_text(Nanos{plan.bound}));
  return Bound{.makespan = clock_start(query) + model.work() + Nanos{plan.bound},
               .proof = std::move(proof),
               .limited_by = Resource::kRecompute};
}

const RegisterBound kKnapsack{{.name = "knapsack",
                               .summary = "what must be absent at one instant is run again, at the least cost by bytes",
                               .swap = false,
                               .steady = true,
                               .compute = knapsack}};
const RegisterBound kMinCut{
    {.name = "min-cut",
     .summary =
         "what is absent at one instant is run again with all it depends on: a minimum cut with a price on memory",
     .swap = false,
     .steady = true,
     .compute = min_cut}};

}  // namespace
}  // namespace tidepool
