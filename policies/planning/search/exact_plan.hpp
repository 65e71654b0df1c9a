// The best of all plans for a step that is small enough to search them all.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "simulator/plan.hpp"
#include "simulator/policy.hpp"
#include "simulator/registry.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The most ops of a step; larger steps are left to other searches.
inline constexpr std::size_t kMostExactOps = 10;
/// The most partial plans of the search over all plans, and of the search over all cycles: a fraction of a second of
/// CPU time.
inline constexpr std::int64_t kMostExactStates = 100'000, kMostSteadyStates = 20'000;

/// The option of planners that call exact_answer().
OptionInfo exact_option();
/// The option that switches off exact_option() of a policy; empty if the policy does not have it.
std::map<std::string, std::string> without_exact(const PolicyInfo& info);

/// A policy that executes a whole plan, and the cost of its run.
struct ExactAnswer {
  std::function<std::unique_ptr<Policy>()> make;
  Result result;
};

/// Extends a plan of one iteration to the run of `spec`. If the step is repeated, the next iterations find buffers that
/// outlive the step at the places that the first iteration leaves.
Plan repeated_as_asked(const Trace& trace, const RunSpec& spec, Plan plan);

/// The answer that executes a realised plan of this trace, with the plan's places where the run's pool is one arena.
/// @param swap  see simulate_under()
ExactAnswer answer_of_plan(const Trace& trace, const RunSpec& spec, Plan plan, bool swap);

/// The fastest of all plans for a run, or for its steady state, if it is faster than `found`; else none. There is no
/// search, and no result, in these cases: a step of more than kMostExactOps ops; the assumptions of a paper; several
/// iterations without a steady state; a policy that is not alone in its chain; a machine that find_optimum()
/// refuses. If the search over plans that swap and recompute gives up, plans that do only one of both are searched.
/// On best-fit and first-fit, places are part of the plan. On other pools, bytes are counted and the pool chooses the
/// places; another plan may then be faster.
/// @param found  the result of the planner's own search
std::optional<ExactAnswer> exact_answer(const Trace& trace, const RunSpec& spec, bool swap, bool remat,
                                        const Result& found);

}  // namespace tidepool
