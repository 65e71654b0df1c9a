#include "simulator/swap/local_search.hpp"

#include <algorithm>
#include <random>

#include "simulator/swap/load_curve.hpp"

namespace tidepool {
namespace {

/// A number in [0, count), the same on every machine. `count` > 0.
std::size_t draw(std::mt19937_64& random, std::size_t count) { return static_cast<std::size_t>(random() % count); }

bool lasts(const Gap& gap, std::size_t slot, std::size_t ops) {
  return (gap.release < slot && slot < gap.due) || slot + ops < gap.due;
}

/// Slots whose load is above the capacity while the selection's copies are under way.
std::vector<std::size_t> crowded(const StepCircle& circle, const std::vector<Gap>& gaps,
                                 const std::vector<std::uint32_t>& selected, const Machine& machine, Bytes capacity,
                                 CopyOut copies) {
  std::vector<Bytes> load = bytes_under_way(circle, gaps, selected, machine, copies);
  const std::vector<Bytes> rest = load_without(circle, gaps, selected);
  std::vector<std::size_t> slots;
  for (std::size_t k = 0; k < load.size(); ++k)
    if (load[k] + rest[k] > capacity) slots.push_back(k);
  return slots;
}

}  // namespace

void improve(Trials& trials, const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine,
             Bytes capacity, std::uint64_t seed) {
  if (gaps.empty()) return;
  std::mt19937_64 random{seed};
  std::vector<std::uint32_t> current;
  for (const PlannedGap& each : trials.best_plan()) current.push_back(each.gap);
  Result current_result = trials.best_result();
  const std::vector<PlannedGap>& best = trials.best_plan();
  const bool early = std::any_of(best.begin(), best.end(), [](const PlannedGap& each) { return each.copy != 0; });
  const CopyOut copies = early ? CopyOut::kWhenFree : CopyOut::kAtRelease;
  std::vector<std::size_t> slots = crowded(circle, gaps, current, machine, capacity, copies);
  while (!trials.over()) {
    std::vector<std::uint32_t> changed = current;
    std::vector<bool> in(gaps.size());
    for (const std::uint32_t i : current) in[i] = true;
    const auto leave_out = [&] {
      if (!changed.empty()) changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(draw(random, changed.size())));
    };
    const auto add = [&] {
      const bool anywhere = slots.empty() || draw(random, 4) == 0;
      const std::size_t slot = anywhere ? draw(random, circle.size()) : slots[draw(random, slots.size())];
      std::vector<std::uint32_t> candidates;
      for (std::uint32_t i = 0; i < gaps.size(); ++i)
        if (!in[i] && lasts(gaps[i], slot, circle.size())) candidates.push_back(i);
      if (!candidates.empty()) changed.push_back(candidates[draw(random, candidates.size())]);
    };
    const std::size_t move = draw(random, 5);
    if (move != 0) add();
    if (move == 0 || move >= 3) leave_out();
    std::vector<PlannedGap> planned =
        schedule_late(circle, gaps, changed, machine, std::max(capacity, peak_without(circle, gaps, changed)));
    if (early) copy_when_free(circle, gaps, planned, machine);
    const Result result = trials.add(gaps, planned);
    if (better(current_result, result)) continue;
    current = std::move(changed);
    current_result = result;
    slots = crowded(circle, gaps, current, machine, capacity, copies);
  }
}

}  // namespace tidepool
