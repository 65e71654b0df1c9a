#include "policies/planning/search/mixed_plan.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "policies/planning/gaps/excess_tree.hpp"
#include "simulator/solvers/robustness.hpp"

namespace tidepool {
namespace {

/// Sums of bytes by slot. Adding bytes to a range of positions is O(1).
class SlotSums {
 public:
  explicit SlotSums(std::size_t slots) : change_(slots + 1) {}

  /// Adds bytes to the slots of the positions [first, last); the range is shorter than two iterations.
  void add(std::uint32_t first, std::uint32_t last, Bytes bytes) {
    const auto n = static_cast<std::uint32_t>(change_.size() - 1);
    if (first >= last) return;
    if (first >= n) first -= n, last -= n;
    change_[first] += bytes;
    change_[std::min(last, n)] -= bytes;
    if (last <= n) return;
    change_[0] += bytes;
    change_[last - n] -= bytes;
  }
  void add_to(std::vector<Bytes>& by_slot) const {
    Bytes sum;
    for (std::size_t k = 0; k < by_slot.size(); ++k) by_slot[k] += sum += change_[k];
  }

 private:
  std::vector<Bytes> change_;
};

}  // namespace

std::optional<MixedPlan> schedule_mixed(const Planning& planning, const MixedSelection& selection, CopyOut copies) {
  const std::size_t n = planning.circle.size();
  const Reruns::Effect effect = planning.reruns.follow(selection.copied, selection.dropped);
  if (!effect.possible) return std::nullopt;
  MixedPlan mixed;
  std::vector<Gap> gaps = planning.gaps;
  StepCircle circle = planning.circle;
  Nanos later;
  for (std::size_t k = 0; k < n; ++k) circle.start[k] += later += effect.time[k];
  circle.start[n] += later;
  SlotSums dropped{n}, early{n}, early_or_back{n};
  for (const std::uint32_t i : selection.dropped) {
    dropped.add(gaps[i].release + 1, gaps[i].due, -gaps[i].size);
    early.add(effect.due[i], gaps[i].due, gaps[i].size);
    early_or_back.add(effect.due[i], gaps[i].due, gaps[i].size);
    gaps[i].due = effect.due[i];
    if (gaps[i].due > gaps[i].release + 1) mixed.plan.dropped.push_back(i);
  }
  std::vector<std::uint32_t> copied;
  for (const std::uint32_t i : selection.copied) {
    gaps[i].due = effect.due[i];
    if (gaps[i].due > gaps[i].release + 1) copied.push_back(i);
  }
  if (planning.leaving_takes_room) copied = worth_copying(circle, gaps, copied, planning.machine, copies);
  dropped.add_to(circle.load);
  mixed.load = load_without(circle, planning.gaps, copied);
  mixed.beyond = bytes_leaving(circle, gaps, copied, planning.machine, copies);
  for (std::size_t k = 0; k < n; ++k) mixed.beyond[k] += effect.held[k];
  early.add_to(circle.load);
  for (std::size_t k = 0; k < n; ++k) circle.load[k] += planning.leaving_takes_room ? mixed.beyond[k] : effect.held[k];
  const Bytes limit = std::max(planning.capacity, peak_without(circle, gaps, copied));
  mixed.plan.copied = schedule_late(circle, gaps, copied, planning.machine, limit);
  for (const PlannedGap& each : mixed.plan.copied)
    early_or_back.add(each.issue, planning.gaps[each.gap].due, gaps[each.gap].size);
  early_or_back.add_to(mixed.beyond);
  if (copies == CopyOut::kWhenFree) copy_when_free(circle, gaps, mixed.plan.copied, planning.machine);
  return mixed;
}

MixedSelection select_by_price(const Planning& planning, const std::vector<Nanos>& costs, double price,
                               const SlotLimits& limits, MixedSelection start) {
  ExcessTree curve{planning.circle, limits, ExcessTree::Asked::kHowMuch};
  MixedSelection selection = std::move(start);
  std::vector<bool> picked(planning.gaps.size());
  for (const std::vector<std::uint32_t>* const part : {&selection.copied, &selection.dropped})
    for (const std::uint32_t i : *part) curve.take(planning.gaps[i]), picked[i] = true;
  std::vector<double> cost;
  std::vector<bool> copy;
  for (std::uint32_t i = 0; i < planning.gaps.size(); ++i) {
    const Gap& gap = planning.gaps[i];
    const Nanos late = std::max(Nanos{}, -spare_time(planning.circle, gap, planning.machine));
    const double copied = price * static_cast<double>(gap.size.count()) + static_cast<double>(late.count());
    const auto dropped = static_cast<double>(costs[i].count());
    copy.push_back(costs[i] == Reruns::kImpossible || copied <= dropped);
    cost.push_back(std::max(1.0, copy[i] ? copied : dropped));
  }
  struct Entry {
    double worth;
    std::uint32_t gap;
    std::size_t picks;
    bool operator<(const Entry& other) const { return worth != other.worth ? worth < other.worth : gap > other.gap; }
  };
  std::vector<Entry> entries;
  entries.reserve(planning.gaps.size());
  for (std::uint32_t i = 0; i < planning.gaps.size(); ++i)
    if (!picked[i]) entries.push_back({curve.excess(planning.gaps[i]) / cost[i], i, 0});
  std::priority_queue<Entry> queue{{}, std::move(entries)};
  std::size_t picks = 0;
  while (!queue.empty() && !curve.fits()) {
    const Entry best = queue.top();
    queue.pop();
    if (!curve.relieves(planning.gaps[best.gap])) continue;  // later picks cannot change this
    if (best.picks + best.picks / 16 < picks) {              // its worth was computed too many picks ago
      queue.push({curve.excess(planning.gaps[best.gap]) / cost[best.gap], best.gap, picks});
      continue;
    }
    (copy[best.gap] ? selection.copied : selection.dropped).push_back(best.gap);
    curve.take(planning.gaps[best.gap]);
    ++picks;
  }
  return selection;
}

void try_mixed_rounds(Trials& trials, const Planning& planning, Bytes slack, int rounds, CopyOut copies,
                      const SelectMixed& select, bool drops_on_demand) {
  const Bytes capacity = planning.capacity - slack;
  SlotLimits limits(planning.circle.size(), capacity);
  for (int round = 0; round < rounds && !trials.over(); ++round) {
    std::optional<MixedPlan> mixed = schedule_mixed(planning, select(limits), copies);
    if (!mixed) return;
    mixed->plan.drops_on_demand = drops_on_demand;
    trials.add(planning.gaps, mixed->plan);
    bool fits = true;
    SlotLimits next(planning.circle.size());
    for (std::size_t k = 0; k < next.size(); ++k) {
      fits = fits && mixed->load[k] <= limits[k];
      next[k] = capacity - mixed->beyond[k];
    }
    if (!fits || next == limits) return;
    limits = std::move(next);
  }
}

std::vector<double> possible_prices(const Planning& planning, const std::vector<Nanos>& costs, std::size_t most) {
  std::vector<double> all;
  for (std::size_t i = 0; i < costs.size(); ++i)
    if (costs[i] != Reruns::kImpossible)
      all.push_back(static_cast<double>(costs[i].count() + 1) / static_cast<double>(planning.gaps[i].size.count()));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<double> prices{0};
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i)
    prices.push_back(1.0001 * all[all.size() <= most ? i : i * (all.size() - 1) / (most - 1)]);
  return prices;
}

void try_with_less(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, GapPlan plan) {
  constexpr std::size_t kFewPrices = 6;
  constexpr int kRounds = 3;
  for (int way = 0; way < 2; ++way, plan.drops_on_demand = !plan.drops_on_demand)
    for (const double price : possible_prices(planning, costs, kFewPrices))
      try_mixed_rounds(
          trials, planning, {}, kRounds, copies_of(plan),
          [&](const SlotLimits& limits) { return select_by_price(planning, costs, price, limits, selection_of(plan)); },
          plan.drops_on_demand);
}

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

Machine with_busy_links(Machine machine) {
  for (Link* const link : {&machine.h2d, &machine.d2h}) {
    *link = at_rate(std::move(*link), link->duplex_ppm);
    link->latency += machine.submit;
  }
  return machine;
}

}  // namespace tidepool
