#include "simulator/hybrid/improve.hpp"

#include <algorithm>
#include <random>

namespace tidepool {
namespace {

enum class How : std::uint8_t { kKept, kCopied, kDropped };

bool lasts(const Gap& gap, std::size_t slot, std::size_t ops) {
  return (gap.release < slot && slot < gap.due) || slot + ops < gap.due;
}

std::vector<How> how_of(const MixedSelection& selection, std::size_t gaps) {
  std::vector<How> how(gaps);
  for (const std::uint32_t i : selection.copied) how[i] = How::kCopied;
  for (const std::uint32_t i : selection.dropped) how[i] = How::kDropped;
  return how;
}

MixedSelection selection_of(const std::vector<How>& how) {
  MixedSelection selection;
  for (std::uint32_t i = 0; i < how.size(); ++i)
    if (how[i] != How::kKept) (how[i] == How::kCopied ? selection.copied : selection.dropped).push_back(i);
  return selection;
}

/// Random changes to what a plan does with its gaps.
class GapChanges {
 public:
  GapChanges(const Planning& planning, const std::vector<Nanos>& costs, std::uint64_t seed)
      : planning_{planning}, costs_{costs}, random_{seed} {}

  /// What is there where, by the plan that is changed.
  void look_at(const MixedPlan& mixed) {
    crowded_.clear();
    for (std::size_t k = 0; k < mixed.load.size(); ++k)
      if (mixed.load[k] + mixed.beyond[k] > planning_.capacity) crowded_.push_back(k);
  }

  /// Uses another gap, treats one otherwise that is used, or both.
  std::vector<How> changed(const std::vector<How>& current) {
    std::vector<How> changed = current;
    const std::size_t move = draw(5);
    if (move != 0) use_another(current, changed);
    if (move == 0 || move >= 3) treat_otherwise(current, changed);
    return changed;
  }

 private:
  /// A number in [0, count), the same on every machine. `count` > 0.
  std::size_t draw(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  How otherwise(How how, std::uint32_t gap) {
    const bool may_drop = costs_[gap] != Reruns::kImpossible;
    if (how == How::kKept) return may_drop && draw(2) == 0 ? How::kDropped : How::kCopied;
    if (!may_drop || draw(2) == 0) return How::kKept;
    return how == How::kCopied ? How::kDropped : How::kCopied;
  }

  void treat_otherwise(const std::vector<How>& current, std::vector<How>& changed) {
    candidates_.clear();
    for (std::uint32_t i = 0; i < current.size(); ++i)
      if (current[i] != How::kKept) candidates_.push_back(i);
    if (candidates_.empty()) return;
    const std::uint32_t i = candidates_[draw(candidates_.size())];
    changed[i] = otherwise(current[i], i);
  }

  /// One that lasts where more would be there than the capacity, if there is such a slot.
  void use_another(const std::vector<How>& current, std::vector<How>& changed) {
    const bool anywhere = crowded_.empty() || draw(4) == 0;
    const std::size_t slot = anywhere ? draw(planning_.circle.size()) : crowded_[draw(crowded_.size())];
    candidates_.clear();
    for (std::uint32_t i = 0; i < current.size(); ++i)
      if (current[i] == How::kKept && lasts(planning_.gaps[i], slot, planning_.circle.size())) candidates_.push_back(i);
    if (candidates_.empty()) return;
    const std::uint32_t i = candidates_[draw(candidates_.size())];
    changed[i] = otherwise(How::kKept, i);
  }

  const Planning& planning_;
  const std::vector<Nanos>& costs_;
  std::mt19937_64 random_;
  std::vector<std::size_t> crowded_;  // slots
  std::vector<std::uint32_t> candidates_;
};

/// What a plan would cost by its schedule alone, in ns: what is run again, and for every stretch of slots in which more
/// would be there than the capacity the time of copying the most of it out and back.
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

MixedSelection selection_of(const GapPlan& plan) {
  MixedSelection selection{{}, plan.dropped};
  for (const PlannedGap& each : plan.copied) selection.copied.push_back(each.gap);
  return selection;
}

CopyOut copies_of(const GapPlan& plan) {
  const bool early =
      std::any_of(plan.copied.begin(), plan.copied.end(), [](const PlannedGap& each) { return each.copy != 0; });
  return early ? CopyOut::kWhenFree : CopyOut::kAtRelease;
}

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
  constexpr int kIdle = 1'000;  // changes in a row that change nothing
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
