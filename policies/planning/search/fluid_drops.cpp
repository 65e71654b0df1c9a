#include "policies/planning/search/fluid_drops.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "policies/planning/gaps/excess_tree.hpp"
#include "policies/planning/search/fluid_shares.hpp"
#include "policies/planning/search/gap_changes.hpp"
#include "policies/planning/search/gap_classes.hpp"
#include "policies/planning/search/reruns.hpp"

namespace tidepool {
namespace {

/// Gaps in the order of the shares that a fluid plan copies of them, the largest share first, until the load fits. Gaps
/// in which the load is nowhere above its limit are left out.
MixedSelection select_by_share(const Planning& planning, const std::vector<double>& shares,
                               const std::vector<std::uint32_t>& dropped, const SlotLimits& limits) {
  MixedSelection selection{{}, dropped};
  ExcessTree curve{planning.circle, limits};
  std::vector<bool> taken(planning.gaps.size());
  for (const std::uint32_t i : dropped) curve.take(planning.gaps[i]), taken[i] = true;
  std::vector<std::uint32_t> order(planning.gaps.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return shares[a] > shares[b]; });
  for (const std::uint32_t i : order) {
    if (curve.fits()) break;
    if (taken[i] || !curve.relieves(planning.gaps[i])) continue;
    curve.take(planning.gaps[i]);
    selection.copied.push_back(i);
  }
  return selection;
}

class FluidDrops {
 public:
  FluidDrops(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs,
             const std::vector<std::uint32_t>& start)
      : trials_{trials},
        planning_{planning},
        costs_{costs},
        classes_{gap_classes(find_structure(planning.trace), planning.circle, planning.gaps)},
        dropped_(planning.gaps.size()) {
    for (const std::uint32_t i : start) dropped_[i] = true;
  }

  void run(int programs) {
    std::optional<FluidCopies> fluid = solve(dropped_);
    if (!fluid) return;
    follow(*fluid);
    std::set<std::vector<bool>> tried;
    const double first = fluid->time;
    for (bool improved = programs > 1; improved && !trials_.over();) {
      improved = false;
      for (const std::vector<bool>& changed : changes(*fluid)) {
        if (!tried.insert(changed).second) continue;
        if (--programs <= 0) break;
        std::optional<FluidCopies> other = solve(changed);
        if (!other || other->time >= fluid->time * kGain) continue;
        fluid = std::move(other), dropped_ = changed, improved = true;
        break;
      }
    }
    if (fluid->time < first) follow(*fluid);
  }

 private:
  static std::vector<std::uint32_t> list_of(const std::vector<bool>& dropped) {
    std::vector<std::uint32_t> list;
    for (std::uint32_t i = 0; i < dropped.size(); ++i)
      if (dropped[i]) list.push_back(i);
    return list;
  }
  std::optional<FluidCopies> solve(const std::vector<bool>& dropped) const {
    const std::vector<std::uint32_t> list = list_of(dropped);
    if (!planning_.reruns.follow({}, list).possible) return std::nullopt;
    return fluid_copies(planning_, list);
  }

  /// The changes that promise the most, the best first.
  std::vector<std::vector<bool>> changes(const FluidCopies& fluid) const {
    std::vector<double> sum{0};  // of prices before each position, over two iterations
    const std::size_t n = planning_.circle.size();
    for (std::size_t k = 0; k < 2 * n; ++k) sum.push_back(sum.back() + fluid.prices[k % n]);
    const auto saved = [&](std::uint32_t i) {
      const Gap& gap = planning_.gaps[i];
      return static_cast<double>(gap.size.count()) * (sum[gap.due] - sum[gap.release + std::size_t{1}]);
    };
    const auto total = [&](const std::vector<bool>& dropped) {
      const Reruns::Effect effect = planning_.reruns.follow({}, list_of(dropped));
      return effect.possible ? static_cast<double>(effect.total.count()) : 1e18;
    };
    const double now = total(dropped_);
    std::vector<std::pair<double, std::vector<bool>>> found;
    for (const GapClass& each : classes_) {
      for (const bool add : {true, false}) {
        std::vector<std::uint32_t> some;
        for (const std::uint32_t i : each.members)
          if (dropped_[i] != add && costs_[i] != Reruns::kImpossible) some.push_back(i);
        if (some.empty()) continue;
        std::stable_sort(some.begin(), some.end(), [&](std::uint32_t a, std::uint32_t b) {
          return add ? saved(a) > saved(b) : saved(a) < saved(b);
        });
        for (const std::size_t part : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
          const std::size_t count = some.size() / part;
          if (count == 0) break;
          std::vector<bool> changed = dropped_;
          double gain = 0;
          for (std::size_t k = 0; k < count; ++k)
            changed[some[k]] = add, gain += add ? saved(some[k]) : -saved(some[k]);
          gain -= total(changed) - now;
          if (gain > 0) found.emplace_back(gain, std::move(changed));
        }
      }
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::vector<bool>> best;
    for (auto& [gain, changed] : found)
      if (best.size() < kMostChanges) best.push_back(std::move(changed));
    return best;
  }

  /// Tries plans with the copies of a fluid plan.
  void follow(const FluidCopies& fluid) {
    if (const Result& best = trials_.best_result();
        best.outcome == Outcome::kOk && fluid.time >= static_cast<double>(best.totals.makespan.count()))
      return;
    StepCircle clock = planning_.circle;
    clock.start = fluid.start;
    const auto& [trace, circle, gaps, reruns, machine, capacity, leaving_takes_room] = planning_;
    const Planning timed{trace, clock, gaps, reruns, machine, capacity, leaving_takes_room};
    const std::vector<std::uint32_t> dropped = list_of(dropped_);
    for (const CopyOut copies : {CopyOut::kWhenFree, CopyOut::kAtRelease})
      for (const int percent : {0, 1, 2, 4}) {
        try_mixed_rounds(trials_, timed, capacity * percent / 100, 3, copies, [&](const SlotLimits& limits) {
          return select_by_share(timed, fluid.shares, dropped, limits);
        });
      }
  }

  static constexpr double kGain = 0.9995;         // a change is kept if its time is below this part of the time before
  static constexpr std::size_t kMostChanges = 4;  // changes that are tried with the same prices
  Trials& trials_;
  const Planning& planning_;
  const std::vector<Nanos>& costs_;
  std::vector<GapClass> classes_;
  std::vector<bool> dropped_;  // by gap
};

}  // namespace

void try_fluid_drops(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs,
                     const std::vector<std::uint32_t>& dropped, int programs) {
  if (!trials.spec().steady || programs == 0 || planning.gaps.empty() || trials.over()) return;
  FluidDrops{trials, planning, costs, dropped}.run(programs);
}

}  // namespace tidepool
