#include "policies/planning/search/rerun_answer.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "policies/planning/search/rerun_schedule.hpp"
#include "simulator/engine/checker.hpp"
#include "simulator/engine/plan_of_runs.hpp"
#include "simulator/options.hpp"
#include "simulator/registry.hpp"
#include "simulator/solvers/bounds/bound.hpp"

namespace tidepool {
namespace {

constexpr double kMostSteps = 8e8, kStepsPerOp = 4e6;

/// Whether the search applies to a run, apart from the outputs of its step.
bool has_problem(const Trace& trace, const RunSpec& spec) {
  const auto one = [&](std::size_t op) { return trace.made(OpId{op}).size() == 1; };
  if (trace.ops().empty() || (!spec.steady && spec.iterations != 1) || spec.capacity == kNoLimit ||
      spec.assume.copy_on_write || spec.policy.policies.size() > 1 || find_pool(spec.pool.name).has_addresses ||
      !writes_anew(trace))
    return false;
  for (std::size_t i = 0; i < trace.ops().size(); ++i)
    if (!one(i)) return false;
  const auto stays = [](const Buffer& buffer) { return !buffer.born_before || buffer.outlives; };
  return !spec.steady || std::all_of(trace.buffers().begin(), trace.buffers().end(), stays);
}

/// The problem of a step. Its values are the versions that ops make; buffers from before the step stay resident. None
/// if an op makes an output of the step.
std::optional<RerunProblem> problem_of(const Trace& trace, const RunSpec& spec) {
  RerunProblem problem;
  problem.room = spec.capacity.count();
  problem.most_runs = rerun_rules(spec.assume).most_runs;
  for (const Buffer& buffer : trace.buffers())
    if (buffer.born_before) problem.room -= buffer.size.count();
  for (const VersionId output : trace.outputs())
    if (trace.version(output).producer.valid()) return std::nullopt;
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    std::vector<std::uint32_t> inputs;
    for (const Use& use : trace.uses(OpId{i}))
      if (use.in.valid() && trace.version(use.in).producer.valid())
        inputs.push_back(trace.version(use.in).producer.value());
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    problem.inputs.push_back(std::move(inputs));
    problem.cost.push_back(trace.ops()[i].duration.count());
    problem.bytes.push_back(trace.size(trace.made(OpId{i})[0]).count());
  }
  return problem;
}

}  // namespace

std::optional<PlanAnswer> rerun_answer(const Trace& trace, const RunSpec& spec, double effort, const Result& found) {
  const bool loses = found.outcome != Outcome::kOk || found.totals.makespan > found.baseline;
  if (found.outcome == Outcome::kInfeasible || !loses || !has_problem(trace, spec)) return std::nullopt;
  const std::optional<RerunProblem> problem = problem_of(trace, spec);
  if (!problem || problem->room < 0) return std::nullopt;
  RerunSearch search;
  search.steps =
      static_cast<std::int64_t>(effort * std::min(kMostSteps, kStepsPerOp * static_cast<double>(trace.ops().size())));
  search.seed = spec.seed;
  const BoundQuery query{trace, spec.machine, spec.capacity, false, true, spec.assume, 1, spec.steady};
  if (const std::optional<Bound> bound = best_bound(query)) {
    if (!bound->feasible) return std::nullopt;
    search.enough = (bound->makespan - found.baseline).count();
  }
  const std::optional<RerunSchedule> schedule = search_reruns(*problem, search);
  if (!schedule) return std::nullopt;
  std::vector<OpId> runs;
  for (const std::uint32_t op : schedule->runs) runs.push_back(OpId{op});
  PlanAnswer answer = answer_of_plan(trace, spec, repeated_as_asked(trace, spec, plan_of_runs(trace, runs)), false);
  if (answer.result.outcome != Outcome::kOk) return std::nullopt;
  const bool faster = found.outcome != Outcome::kOk || answer.result.totals.makespan < found.totals.makespan;
  if (!faster) return std::nullopt;
  return answer;
}

}  // namespace tidepool
