#include "policies/planning/search/exact_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "policies/planning/gaps/trials.hpp"
#include "policies/planning/search/best_plan.hpp"
#include "policies/planning/search/counted_pool.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/optimum/optimum.hpp"
#include "simulator/solvers/optimum/steady.hpp"
#include "traces/base/error.hpp"

namespace tidepool {
namespace {

using Places = BestPlan::Places;

bool takes_place(const Action& action) {
  return action.verb == Verb::kAlloc || action.verb == Verb::kSwapIn || action.verb == Verb::kScratch;
}

/// Whether only pools decide on such actions. The run's pool decides on them again when the plan is followed.
bool is_of_pool(const Action& action) {
  return action.verb == Verb::kReserve || action.verb == Verb::kRelease || action.verb == Verb::kMap ||
         action.verb == Verb::kUnmap;
}

/// The places of a plan, request by request. Those of its cycle are repeated for all iterations that may run.
Places places_of(const Plan& plan, int most_iterations) {
  Places places;
  std::vector<std::size_t> begins{0};  // by iteration
  for (const Action& action : plan.actions) {
    if (action.verb == Verb::kNext) begins.push_back(places.size());
    if (takes_place(action)) places.push_back({action.offset, action.size});
  }
  const std::size_t last = places.size(), known = begins.size(),
                    first = begins[known - std::min(static_cast<std::size_t>(plan.cycle), known)];
  // The run begins one more iteration than it completes.
  for (std::size_t i = known; i < static_cast<std::size_t>(most_iterations) + 1; ++i)
    for (std::size_t each = first; each < last; ++each) places.push_back(FollowedPool::Place{places[each]});
  return places;
}

/// The best plan; none if the search did not find it.
std::optional<Plan> best_plan(const OptimumQuery& query, bool steady) {
  try {
    if (!steady) {
      Optimum found = find_optimum(query);
      if (found.exact && found.feasible) return std::move(found.plan);
      return std::nullopt;
    }
    SteadyOptimum found = find_steady_optimum(query);
    if (!found.exact || !found.feasible) return std::nullopt;
    found.plan.cycle = static_cast<int>(found.iterations);
    return std::move(found.plan);
  } catch (const InputError&) {  // the search refuses the step or the machine
    return std::nullopt;
  }
}

bool is_small(const Trace& trace, const RunSpec& spec) {
  return !trace.ops().empty() && trace.ops().size() <= kMostExactOps && spec.assume.name.empty() &&
         (spec.steady || spec.iterations == 1) && spec.policy.policies.size() <= 1;
}

std::optional<ExactAnswer> answer_within(const Trace& trace, const RunSpec& spec, bool swap, bool remat) {
  const std::optional<Bytes> granule = granule_of(spec.pool);
  const OptimumQuery query{.trace = trace,
                           .machine = spec.machine,
                           .capacity = granule ? *granule * (spec.capacity / *granule) : spec.capacity,
                           .swap = swap,
                           .remat = remat,
                           .addresses = granule.has_value(),
                           .most_states = spec.steady ? kMostSteadyStates : kMostExactStates,
                           .granule = granule.value_or(Bytes{1})};
  std::optional<Plan> best = best_plan(query, spec.steady);
  if (!best) return std::nullopt;
  return answer_of_plan(trace, spec, std::move(*best), swap);
}

}  // namespace

Plan repeated_as_asked(const Trace& trace, const RunSpec& spec, Plan plan) {
  const auto is_next = [](const Action& action) { return action.verb == Verb::kNext; };
  if (!spec.steady || std::any_of(plan.actions.begin(), plan.actions.end(), is_next)) return plan;
  const auto begins_resident = [&](const Action& action) {
    if (action.verb != Verb::kAlloc) return false;
    const Buffer& buffer = trace.buffer(trace.version(VersionId{action.subject}).buffer);
    return buffer.born_before && buffer.outlives;
  };
  const std::vector<Action> once = plan.actions;
  plan.actions.push_back({.verb = Verb::kNext, .before = OpId{0}, .subject = 1});
  std::copy_if(once.begin(), once.end(), std::back_inserter(plan.actions),
               [&](const Action& action) { return !begins_resident(action); });
  return plan;
}

ExactAnswer answer_of_plan(const Trace& trace, const RunSpec& spec, Plan realised, bool swap) {
  std::erase_if(realised.actions, is_of_pool);
  const auto plan = std::make_shared<const Plan>(std::move(realised));
  const auto places =
      granule_of(spec.pool) ? std::make_shared<const Places>(places_of(*plan, spec.iterations)) : nullptr;
  const auto make = [plan, places] { return std::make_unique<BestPlan>(plan, places); };
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(make());
  return {make, simulate_under(trace, spec, std::move(policies), swap)};
}

OptionInfo exact_option() {
  return {
      "exact", "on", "on/off",
      fmt::format("also search all plans of a step of at most {} ops, up to {} partial plans ({} for a repeated step)",
                  kMostExactOps, kMostExactStates, kMostSteadyStates)};
}

std::map<std::string, std::string> without_exact(const PolicyInfo& info) {
  const OptionInfo ours = exact_option();
  const bool has = std::any_of(info.options.begin(), info.options.end(), [&](const OptionInfo& option) {
    return option.name == ours.name && option.meaning == ours.meaning;
  });
  if (!has) return {};
  return {{ours.name, "off"}};
}

std::optional<ExactAnswer> exact_answer(const Trace& trace, const RunSpec& spec, bool swap, bool remat,
                                        const Result& found) {
  const auto loses = [](const Result& result) {
    return result.outcome != Outcome::kOk || result.totals.makespan > result.baseline;
  };
  if (!is_small(trace, spec) || found.outcome == Outcome::kInfeasible || !loses(found)) return std::nullopt;
  std::optional<ExactAnswer> best = answer_within(trace, spec, swap, remat);
  if (!best && swap && remat)
    for (const bool swaps : {true, false})
      if (std::optional<ExactAnswer> other = answer_within(trace, spec, swaps, !swaps))
        if (!best || better(other->result, best->result)) best = std::move(other);
  if (!best || best->result.outcome != Outcome::kOk) return std::nullopt;
  const bool faster = found.outcome != Outcome::kOk || best->result.totals.makespan < found.totals.makespan;
  return faster ? std::move(best) : std::nullopt;
}

}  // namespace tidepool
