#include "policies/planning/search/improve.hpp"

#include <algorithm>

#include "policies/planning/search/gap_changes.hpp"

namespace tidepool {
namespace {

/// The estimated cost of a plan by its schedule alone, in ns: the time of reruns and waits, and for each sequence of
/// slots above the capacity, the time to copy its largest excess out and back.
double estimate(const Planning& planning, const MixedPlan& mixed) {
  const auto per_byte = [](const Link& link) { return 1e9 / static_cast<double>(link.rate.count()); };
  const double copied = per_byte(planning.machine.h2d) + per_byte(planning.machine.d2h);
  double cost = static_cast<double>((mixed.recomputed + mixed.late).count());
  Bytes most;
  for (std::size_t k = 0; k <= mixed.load.size(); ++k) {
    const Bytes over = k < mixed.load.size() ? mixed.load[k] + mixed.beyond[k] - planning.capacity : Bytes{};
    if (over > Bytes{}) {
      most = std::max(most, over);
      continue;
    }
    cost += copied * static_cast<double>(most.count());
    most = {};
  }
  return cost;
}

}  // namespace

MixedSelection improve_by_estimate(const Planning& planning, const std::vector<Nanos>& costs, MixedSelection start,
                                   CopyOut copies, std::int64_t tries, std::uint64_t seed) {
  const std::optional<MixedPlan> first = schedule_mixed(planning, start, copies);
  if (!first || planning.gaps.empty()) return start;
  std::vector<How> current = how_of(start, planning.gaps.size());
  double least = estimate(planning, *first);
  GapChanges changes{planning, costs, seed};
  changes.look_at(*first);
  for (; tries > 0 && least > 0; --tries) {
    std::vector<How> changed = changes.changed(current);
    const std::optional<MixedPlan> mixed = schedule_mixed(planning, selection_of(changed), copies);
    if (!mixed) continue;
    const double cost = estimate(planning, *mixed);
    if (cost > least) continue;
    current = std::move(changed);
    least = cost;
    changes.look_at(*mixed);
  }
  return selection_of(current);
}

void improve(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, const GapPlan& start,
             std::uint64_t seed) {
  const auto schedule = [&, copies = copies_of(start), drops = start.drops_on_demand](const MixedSelection& selection) {
    std::optional<MixedPlan> mixed = schedule_mixed(planning, selection, copies);
    if (mixed) mixed->plan.drops_on_demand = drops;
    return mixed;
  };
  const MixedSelection selected = selection_of(start);
  const std::optional<MixedPlan> first = schedule(selected);
  if (planning.gaps.empty() || !first || trials.over()) return;
  std::vector<How> current = how_of(selected, planning.gaps.size());
  Result current_result = trials.add(planning.gaps, first->plan);
  GapChanges changes{planning, costs, seed};
  changes.look_at(*first);
  constexpr int kIdle = 1'000;  // changes in a row that give no new plan
  for (int idle = 0; !trials.over() && idle < kIdle;) {
    std::vector<How> changed = changes.changed(current);
    const std::optional<MixedPlan> mixed = schedule(selection_of(changed));
    const std::int64_t judged = trials.judged();
    const Result* const result = mixed ? &trials.add(planning.gaps, mixed->plan) : nullptr;
    idle = trials.judged() == judged ? idle + 1 : 0;
    if (result == nullptr || better(current_result, *result)) continue;
    current = std::move(changed);
    current_result = *result;
    changes.look_at(*mixed);
  }
}

}  // namespace tidepool
