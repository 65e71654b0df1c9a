#include "policies/hybrid/tide/rivals.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <utility>

#include "policies/planning/gaps/gap_draft.hpp"
#include "policies/planning/search/answering_planner.hpp"
#include "simulator/registry.hpp"

namespace tidepool {

/// A bound on all policies that take only these kinds of action.
std::optional<Bound> Rivals::bound(bool swap, bool recompute) const {
  return best_bound({.trace = trace_,
                     .machine = spec_.machine,
                     .capacity = spec_.capacity,
                     .swap = swap,
                     .remat = recompute,
                     .assume = spec_.assume,
                     .iterations = spec_.iterations,
                     .steady = spec_.steady});
}

/// Whether policies that take only these kinds of action may beat `best`.
bool Rivals::may_win(bool swap, bool recompute, const Result& best) const {
  const std::optional<Bound> least = bound(swap, recompute);
  return !least || (least->feasible && (best.outcome != Outcome::kOk || least->makespan < best.totals.makespan));
}

std::optional<Rivals::Winner> Rivals::beat(Result& best) {
  std::optional<Winner> winner;
  const auto kind = [](PolicyKind one) { return static_cast<std::size_t>(one); };
  std::array<bool, 8> may{};
  may[kind(PolicyKind::kSwap)] = may_swap_ && may_win(true, false, best);
  may[kind(PolicyKind::kRemat)] = may_recompute_ && may_win(false, true, best);
  may[kind(PolicyKind::kHybrid)] = may_swap_ && may_recompute_ && may_win(true, true, best);
  for (const PolicyInfo* info : all_policies()) {
    if (info->name == self_ || !may[kind(info->kind)]) continue;
    RunSpec spec = spec_;
    // The first trial of a search may be slower than its final plan.
    const bool searches = std::any_of(info->options.begin(), info->options.end(),
                                      [](const OptionInfo& option) { return option.name == "effort"; });
    spec.overhead_limit = limit_of(trace_, spec_, best, searches ? 2 : 1);
    const auto make = [info, seed = spec_.seed] { return info->make(Options{info->name, info->options, {}, seed}); };
    std::shared_ptr<const AnsweringPlanner::Maker> found;
    Result result;
    ++judged_;
    try {
      std::unique_ptr<Policy> policy = make();
      if (const auto* const answering = dynamic_cast<const AnsweringPlanner*>(policy.get())) found = answering->maker();
      result = judge(trace_, spec, std::move(policy));
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception&) {  // a policy of a plug-in, or one in Python, that fails is no rival
      continue;
    }
    if (!better(result, best) || (best.outcome == Outcome::kOk && result.totals.makespan == best.totals.makespan))
      continue;
    best = result;
    winner = Winner{make, spec.overhead_limit};
    if (found && *found) winner->make = *found;
  }
  return winner;
}

}  // namespace tidepool
