#include "policies/hybrid/tide/step_model.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "policies/planning/remat/saved.hpp"

namespace tidepool {
namespace {

/// By idle interval: time of recomputation if nothing else is dropped. O(uses of the recomputed ops of each)
std::vector<Nanos> recompute_costs(const Trace& trace, const std::vector<Gap>& gaps) {
  constexpr std::size_t kMostOps = 100;  // content that needs more recomputations is too costly for any plan
  const std::vector<std::uint32_t> ends = ends_of_versions(trace);
  std::vector<std::uint32_t> asked(trace.ops().size());  // by op: 1 + the last interval that it is recomputed for
  const auto cost_of = [&](std::uint32_t i) {
    const Gap& gap = gaps[i];
    if (gap.crosses) return StepModel::kImpossible;
    Nanos cost;
    std::vector<VersionId> needed{gap.out};
    std::size_t ops = 0;
    while (!needed.empty()) {
      const OpId op = trace.version(needed.back()).producer;
      needed.pop_back();
      if (!op.valid() || trace.op(op).kind == OpKind::kSource) return StepModel::kImpossible;
      if (std::exchange(asked[op.index()], i + 1) == i + 1) continue;
      if (++ops > kMostOps) return StepModel::kImpossible;
      cost += trace.op(op).duration;
      for (const Use& use : trace.uses(op))
        if (use.in.valid() && ends[trace.root(use.in).index()] <= gap.due) needed.push_back(trace.root(use.in));
    }
    return cost;
  };
  std::vector<Nanos> costs;
  for (std::uint32_t i = 0; i < gaps.size(); ++i) costs.push_back(cost_of(i));
  return costs;
}

}  // namespace

StepModel::StepModel(const Trace& of, const RunSpec& run, bool recomputes, Bytes least,
                     std::vector<DeadContent> dropped)
    : trace{of},
      spec{run},
      dead{std::move(dropped)},
      dead_drops{drops_of(dead)},
      circle{step_circle(of, SlotBegins::kAfterFrees, dead)},
      gaps{find_gaps_of_run(of, least, circle, run)},
      machine{run.machine},
      recompute{recomputes ? recompute_costs(of, gaps) : std::vector<Nanos>(gaps.size(), kImpossible)},
      by_release(gaps.size()) {
  machine.h2d.latency += machine.submit;
  machine.d2h.latency += machine.submit;
  for (const Gap& gap : gaps) {
    in.push_back(machine.h2d.time(gap.size));
    out.push_back(machine.d2h.time(gap.size));
  }
  std::iota(by_release.begin(), by_release.end(), 0U);
  std::stable_sort(by_release.begin(), by_release.end(),
                   [this](std::uint32_t a, std::uint32_t b) { return gaps[a].release < gaps[b].release; });
}

bool StepModel::can_drop(std::size_t gap) const { return recompute[gap] != kImpossible; }

}  // namespace tidepool
