#include "policies/hybrid/tide/interval_classes.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace tidepool {
namespace {

/// The number of steps of x on a scale with `steps` of them between each power of two and the next. Exact everywhere.
std::int64_t on_scale(double x, int steps) {
  int power = 0;
  const double fraction = std::frexp(x, &power);  // in [0.5, 1)
  return std::int64_t{power} * steps + static_cast<std::int64_t>((2 * fraction - 1) * steps);
}

/// What is equal for all members of a class.
using Key = std::array<std::int64_t, 10>;

IntervalClass alone(const StepModel& model, const TimeGroups& groups, std::uint32_t i) {
  const Gap& gap = model.gaps[i];
  IntervalClass each;
  each.begin = groups.first_from(std::size_t{gap.release} + 1);
  each.end = groups.position(gap.due);
  each.release = groups.position(gap.release);
  each.due = groups.position(gap.due);
  const bool made_before = gap.made == Gap::kBefore || gap.made == Gap::kUnchanged;
  each.made = groups.position(made_before ? gap.release : std::min(gap.made, gap.release));
  if (gap.renewed.valid()) each.made = groups.position(gap.renewed_by) - static_cast<std::int64_t>(groups.size());
  // Content is on its way before the first of these groups and from the last one on.
  const Nanos released = groups.at_slot(std::size_t{gap.release} + 1);
  const Nanos gone = gap.made == Gap::kUnchanged || gap.renewed.valid() ? released : released + model.out[i];
  const Nanos comes = groups.at_slot(gap.due) - model.in[i];
  each.copy_begin = each.begin;
  each.copy_end = each.end;
  while (each.copy_begin < each.end && groups.at(each.copy_begin) < gone) ++each.copy_begin;
  while (each.copy_end > each.copy_begin && groups.at(each.copy_end) > comes) --each.copy_end;
  if (!each.can_copy()) each.copy_begin = each.copy_end = 0;
  return each;
}

void add_member(IntervalClass& to, const StepModel& model, std::uint32_t i) {
  to.members.push_back(i);
  to.bytes += in_mib(model.gaps[i].size);
  to.in += in_ms(model.in[i]);
  to.out += in_ms(model.out[i]);
  if (model.can_drop(i)) to.recompute = std::max(0.0, to.recompute) + in_ms(model.recompute[i]);
}

}  // namespace

IntervalClasses find_interval_classes(const StepModel& model, const TimeGroups& groups,
                                      const std::vector<bool>& above) {
  const auto count = static_cast<std::int64_t>(groups.size());
  std::vector<std::int64_t> above_before(static_cast<std::size_t>(3 * count + 1));  // groups above, by position
  for (std::size_t p = 0; p + 1 < above_before.size(); ++p)
    above_before[p + 1] = above_before[p] + (above[p % groups.size()] ? 1 : 0);
  IntervalClasses found;
  found.class_of.assign(model.gaps.size(), IntervalClasses::kNone);
  std::vector<IntervalClass> singles(model.gaps.size());
  for (std::uint32_t i = 0; i < model.gaps.size(); ++i) {
    IntervalClass each = alone(model, groups, i);
    const bool relieves = each.begin < each.end && above_before[static_cast<std::size_t>(each.end)] >
                                                       above_before[static_cast<std::size_t>(each.begin)];
    if (!relieves || (!each.can_copy() && !model.can_drop(i))) continue;
    add_member(each, model, i);
    singles[i] = std::move(each);
    found.by_content[model.gaps[i].out.value()].push_back(i);
    if (model.gaps[i].crosses) found.on_host[model.gaps[i].in.value()] = i;
  }
  std::map<Key, std::uint32_t> like;
  for (auto& [content, intervals] : found.by_content) {
    std::sort(intervals.begin(), intervals.end(),
              [&](std::uint32_t a, std::uint32_t b) { return model.gaps[a].release < model.gaps[b].release; });
    for (const std::uint32_t i : intervals) {
      const IntervalClass& each = singles[i];
      const auto next = static_cast<std::uint32_t>(found.classes.size());
      std::uint32_t at = next;
      if (intervals.size() == 1 && !found.on_host.contains(content)) {
        const Key key{each.begin,
                      each.end,
                      each.copy_begin,
                      each.copy_end,
                      each.due,
                      each.release,
                      each.made,
                      model.gaps[i].made == Gap::kUnchanged ? 1 : 0,
                      each.recompute < 0 ? -1'000 : on_scale(1e-9 + each.recompute / each.bytes, 8),
                      on_scale(each.bytes, 1)};
        at = like.try_emplace(key, next).first->second;
      }
      if (at == next)
        found.classes.push_back(each);
      else
        add_member(found.classes[at], model, i);
      found.class_of[i] = at;
    }
  }
  return found;
}

}  // namespace tidepool
