#include "policies/pool/smartpool/smartpool_plan.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace tidepool {
namespace {

/// The first event from which `length` - 1 events equal those `length` events later, if there is one.
std::optional<std::size_t> first_repetition(std::span<const SmartPoolEvent> events, std::size_t length) {
  const std::size_t compared = length - 1;
  const auto equal = [&](std::size_t i) { return events[i].signature == events[i + length].signature; };
  const std::size_t last = events.size() - length;  // one past the last event with an event `length` later
  for (std::size_t anchor = 0; anchor < last; anchor += compared) {
    if (!equal(anchor)) continue;
    std::size_t first = anchor, end = anchor + 1;
    while (first > 0 && anchor - first + 1 < compared && equal(first - 1)) --first;
    while (end < last && end - first < compared && equal(end)) ++end;
    if (end - first >= compared) return first;
  }
  return {};
}

struct PlannedBlock {
  std::size_t malloc = 0;
  std::size_t free = 0;
  Bytes size;
  Bytes offset;
};

using Range = std::pair<Bytes, Bytes>;  // [first, second)

/// Sorts the ranges, and joins those that overlap or touch.
void merge(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::size_t kept = 0;
  for (const Range& range : ranges)
    if (kept > 0 && range.first <= ranges[kept - 1].second)
      ranges[kept - 1].second = std::max(ranges[kept - 1].second, range.second);
    else
      ranges[kept++] = range;
  ranges.resize(kept);
}

Bytes choose(const std::vector<Range>& taken, Bytes size, SmartPoolFit fit) {
  if (taken.empty()) return {};
  if ((fit == SmartPoolFit::kFirst || taken.size() == 1) && size <= taken.front().first) return {};
  std::optional<std::size_t> best;
  const auto hole = [&](std::size_t i) { return taken[i + 1].first - taken[i].second; };
  for (std::size_t i = 0; i + 1 < taken.size(); ++i) {
    if (hole(i) < size) continue;
    if (!best || (fit == SmartPoolFit::kBest && hole(i) < hole(*best))) best = i;
  }
  return taken[best.value_or(taken.size() - 1)].second;
}

/// @return the height
Bytes place_all(std::vector<PlannedBlock>& blocks, SmartPoolFit fit) {
  std::sort(blocks.begin(), blocks.end(), [](const PlannedBlock& a, const PlannedBlock& b) {
    return std::tuple{-a.size, a.malloc} < std::tuple{-b.size, b.malloc};
  });
  Bytes height;
  std::vector<Range> taken;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    PlannedBlock& block = blocks[i];
    taken.clear();
    for (std::size_t j = 0; j < i; ++j)
      if (std::max(blocks[j].malloc, block.malloc) < std::min(blocks[j].free, block.free))
        taken.emplace_back(blocks[j].offset, blocks[j].offset + blocks[j].size);
    merge(taken);
    block.offset = choose(taken, block.size, fit);
    height = std::max(height, block.offset + block.size);
  }
  return height;
}

}  // namespace

SmartPoolPeriod longest_repetition(std::span<const SmartPoolEvent> events) {
  for (std::size_t length = (events.size() + 1) / 2; length > 1; --length)
    if (const std::optional<std::size_t> first = first_repetition(events, length)) return {*first, length};
  return {};
}

SmartPoolPeriod find_smartpool_period(std::span<const SmartPoolEvent> events) {
  constexpr std::size_t kLeastInside = 51, kLeast = 101;
  SmartPoolPeriod found = longest_repetition(events);
  if (const SmartPoolPeriod inside = longest_repetition(events.subspan(found.location, found.length));
      inside.length >= kLeastInside)
    found = {found.location + inside.location, inside.length};
  return found.length >= kLeast ? found : SmartPoolPeriod{};
}

SmartPoolPlan plan_smartpool(std::span<const SmartPoolEvent> events, SmartPoolPeriod period, SmartPoolFit fit) {
  const std::size_t end = period.location + period.length;
  std::vector<std::size_t> freed(period.length, period.length);
  for (std::size_t i = period.location; i < end; ++i)
    if (events[i].malloc != SmartPoolEvent::kIsMalloc && events[i].malloc >= period.location)
      freed[events[i].malloc - period.location] = i - period.location;
  std::vector<PlannedBlock> normal, cross;
  for (std::size_t i = 0; i < period.length; ++i) {
    const SmartPoolEvent& event = events[period.location + i];
    if (event.malloc != SmartPoolEvent::kIsMalloc || event.signature == 0) continue;
    (freed[i] < period.length ? normal : cross).push_back({i, freed[i], Bytes{event.signature}, {}});
  }

  SmartPoolPlan plan;
  plan.cross = place_all(cross, fit);
  const Bytes base = plan.cross * 2;
  plan.height = base + place_all(normal, fit);
  for (const PlannedBlock& block : cross) plan.slots.push_back({block.malloc, block.size, block.offset, true});
  for (const PlannedBlock& block : normal) plan.slots.push_back({block.malloc, block.size, base + block.offset, false});
  return plan;
}

}  // namespace tidepool
