#include "simulator/hybrid/rivals.hpp"

#include <algorithm>
#include <array>

#include "simulator/bounds/bound.hpp"
#include "simulator/registry.hpp"
#include "simulator/swap/trials.hpp"

namespace tidepool {

std::unique_ptr<Policy> Rivals::make(const std::string& name) const {
  const PolicyInfo& info = find_policy(name);
  return info.make(Options{info.name, info.options, {}, spec_.seed});
}

/// Whether policies that do only this might beat `best`.
bool Rivals::may_win(bool swap, bool recompute, const Result& best) const {
  if (best.outcome != Outcome::kOk) return true;
  const std::optional<Bound> bound = best_bound({.trace = trace_,
                                                 .machine = spec_.machine,
                                                 .capacity = spec_.capacity,
                                                 .swap = swap,
                                                 .remat = recompute,
                                                 .assume = spec_.assume,
                                                 .iterations = spec_.iterations});
  return !bound || (bound->feasible && bound->makespan < best.totals.makespan);
}

std::optional<Rivals::Winner> Rivals::beat(Result& best) {
  std::optional<Winner> winner;
  const auto kind = [](PolicyKind one) { return static_cast<std::size_t>(one); };
  std::array<bool, 8> may{};
  may[kind(PolicyKind::kSwap)] = may_swap_ && may_win(true, false, best);
  may[kind(PolicyKind::kRemat)] = may_recompute_ && may_win(false, true, best);
  may[kind(PolicyKind::kHybrid)] = may_swap_ && may_recompute_;
  for (const PolicyInfo* info : all_policies()) {
    if (info->name == self_ || !may[kind(info->kind)]) continue;
    RunSpec spec = spec_;
    // What a search tries first may be slower than what it ends with.
    const bool searches = std::any_of(info->options.begin(), info->options.end(),
                                      [](const OptionInfo& option) { return option.name == "effort"; });
    spec.overhead_limit = limit_of(trace_, spec_, best, searches ? 2 : 1);
    const Result result = judge(trace_, spec, make(info->name));
    ++judged_;
    if (!better(result, best) || (best.outcome == Outcome::kOk && result.totals.makespan == best.totals.makespan))
      continue;
    best = result;
    winner = {info->name, spec.overhead_limit};
  }
  return winner;
}

}  // namespace tidepool
