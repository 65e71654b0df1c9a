#include "policies/planning/search/improve.hpp"

#include <optional>
#include <utility>

#include "policies/planning/search/gap_changes.hpp"

namespace tidepool {

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
