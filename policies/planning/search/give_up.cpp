#include "policies/planning/search/give_up.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace tidepool {

void give_up_copies(Trials& trials, const Planning& planning, const GapPlan& start, std::int64_t most) {
  MixedSelection selection = selection_of(start);
  const Nanos least = planning.circle.period() / 20'000;
  std::vector<std::uint32_t> order = selection.copied;
  std::erase_if(order, [&](std::uint32_t i) { return planning.machine.d2h.time(planning.gaps[i].size) < least; });
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Bytes size_a = planning.gaps[a].size, size_b = planning.gaps[b].size;
    return size_a != size_b ? size_a < size_b : a < b;
  });
  std::optional<GapPlan> fastest;
  std::optional<Nanos> time;
  for (const std::uint32_t i : order) {
    if (trials.free() || most-- <= 0) break;
    MixedSelection less = selection;
    std::erase(less.copied, i);
    std::optional<MixedPlan> mixed = schedule_mixed(planning, less, copies_of(start));
    if (!mixed) continue;
    mixed->plan.drops_on_demand = start.drops_on_demand;
    const auto run = [&](const GapPlan& plan) { return trials.realise(trials.draft(planning.gaps, plan)); };
    if (!time) time = run(start).totals.makespan;
    const Result result = run(mixed->plan);
    if (result.outcome != Outcome::kOk || result.totals.makespan >= *time) continue;
    time = result.totals.makespan;
    fastest = std::move(mixed->plan);
    selection = std::move(less);
  }
  if (fastest) trials.add(planning.gaps, *fastest);
}

}  // namespace tidepool
