// The best of all plans of a step that is small enough to try them all.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "simulator/policy.hpp"
#include "simulator/registry.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Steps of more ops are left to other searches.
inline constexpr std::size_t kMostExactOps = 10;
/// Partial plans after which the search of all plans gives up, and of all cycles: a fraction of a second of CPU time.
inline constexpr std::int64_t kMostExactStates = 100'000, kMostSteadyStates = 20'000;

/// The option of planners that ask for exact_answer().
OptionInfo exact_option();
/// Options of a policy with which it does not ask, if it would.
std::map<std::string, std::string> without_exact(const PolicyInfo& info);

/// A policy that carries out a whole plan, and what its run comes to.
struct ExactAnswer {
  std::function<std::unique_ptr<Policy>()> make;
  Result result;
};

/// The fastest plan of all in the setting of a run, or of its steady state, if that is faster than `found`.
/// Nothing: it is not, or is not looked for. Not looked for are plans of steps of more than kMostExactOps ops, under a
/// paper's assumptions, for the last of several iterations, of a policy that is not alone in its chain, on a machine
/// that find_optimum() refuses, and where its search gives up. Of plans that may swap and recompute, those that do only
/// one of both are asked for in that case.
/// On best-fit and first-fit places are part of the plan. On other pools bytes are counted and the pool gives the
/// places; then another plan may be faster there.
/// @param found  what the planner comes to without
std::optional<ExactAnswer> exact_answer(const Trace& trace, const RunSpec& spec, bool swap, bool remat,
                                        const Result& found);

}  // namespace tidepool
