// A tree over slots, and schedules made with it, compared with visits of every slot.
#include "policies/planning/gaps/range_tree.hpp"

#include <algorithm>

#include "policies/planning/gaps/excess_tree.hpp"
#include "policies/planning/gaps/load_area.hpp"
#include "policies/planning/gaps/schedule.hpp"
#include "policies/planning/gaps/selection.hpp"
#include "tests/catch.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::range_tree_test {

using tests::Random;

namespace {

/// The result of schedule_late(), computed slot by slot.
std::vector<PlannedGap> late_by_slots(const StepCircle& circle, const std::vector<Gap>& gaps,
                                      std::vector<std::uint32_t> order, const Machine& machine, Bytes limit) {
  const std::size_t n = circle.size();
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return gaps[a].due % n != gaps[b].due % n ? gaps[a].due % n > gaps[b].due % n : a > b;
  });
  std::vector<PlannedGap> planned;
  Nanos lane = circle.period();
  for (int round = 0; round < 2; ++round) {
    std::vector<Bytes> load = load_without(circle, gaps, order);
    planned.clear();
    for (const std::uint32_t i : order) {
      const Gap& gap = gaps[i];
      const Nanos shift = circle.period() * static_cast<std::int64_t>(gap.due / n);
      const Nanos begin = std::min(circle.at(gap.due), lane + shift) - machine.h2d.time(gap.size);
      std::uint32_t issue = gap.due;
      while (issue > gap.release + 1 && circle.at(issue) > begin && load[(issue - 1) % n] + gap.size <= limit)
        load[--issue % n] += gap.size;
      planned.push_back({i, issue});
      lane = std::min(lane, std::max(circle.at(issue), begin) - shift);
    }
    if (lane >= Nanos{}) break;
    lane += circle.period();
  }
  return planned;
}

}  // namespace

TEST_CASE("a tree over slots gives the answers of a list of slots") {
  Random random{3};
  for (const std::size_t slots : {1u, 2u, 7u, 64u, 100u}) {
    std::vector<Bytes> list(slots);
    for (Bytes& slot : list) slot = Bytes{static_cast<std::int64_t>(random.below(50))};
    RangeTree tree{list};
    for (int i = 0; i < 300; ++i) {
      const std::size_t first = random.below(slots), last = first + random.below(slots - first + 1);
      const Bytes bytes{static_cast<std::int64_t>(random.below(41)) - 20};
      for (std::size_t k = first; k < last; ++k) list[k] += bytes;
      tree.add(first, last, bytes);
      const std::size_t from = random.below(slots), to = from + 1 + random.below(slots - from);
      const auto begin = list.begin() + static_cast<std::ptrdiff_t>(from);
      const auto end = list.begin() + static_cast<std::ptrdiff_t>(to);
      CHECK(tree.most(from, to) == *std::max_element(begin, end));
      CHECK(tree.most() == *std::max_element(list.begin(), list.end()));
      std::size_t behind = to;
      while (behind > from && list[behind - 1] <= bytes) --behind;
      CHECK(tree.behind_last_above(from, to, bytes) == behind);
    }
  }
}

TEST_CASE("a load without some gaps is the same if they are subtracted slot by slot") {
  Random random{4};
  StepCircle circle;
  circle.start.emplace_back(0);
  for (int i = 0; i < 40; ++i) {
    circle.start.push_back(circle.start.back() + Nanos{static_cast<std::int64_t>(1 + random.below(20))});
    circle.load.emplace_back(static_cast<std::int64_t>(500 + random.below(500)));
  }
  const Bytes limit = 600_B;
  ExcessTree tree{circle, SlotLimits(40, limit), ExcessTree::Asked::kHowMuch};
  LoadArea area{circle};
  std::vector<Bytes> load = circle.load;
  int relieving = 0;
  for (int i = 0; i < 200; ++i) {
    const auto release = static_cast<std::uint32_t>(random.below(39));
    const Gap gap{.out = {},
                  .in = {},
                  .size = Bytes{static_cast<std::int64_t>(random.below(60))},
                  .release = release,
                  .due = release + 2 + static_cast<std::uint32_t>(random.below(38))};
    std::int64_t all = 0, above = 0;
    for (std::uint32_t p = gap.release + 1; p < gap.due; ++p) {
      const Nanos time = circle.start[p % 40 + 1] - circle.start[p % 40];
      all += load[p % 40].count() * time.count();
      above += std::max(load[p % 40] - limit, Bytes{}).count() * time.count();
    }
    REQUIRE(tree.relieves(gap) == (above > 0));
    REQUIRE(tree.fits() == std::all_of(load.begin(), load.end(), [&](Bytes bytes) { return bytes <= limit; }));
    REQUIRE(tree.excess(gap) == static_cast<double>(above));  // exact: whole numbers below 2^53
    REQUIRE(area.of(gap) == static_cast<double>(all));
    if (above == 0) continue;
    ++relieving;
    for (std::uint32_t p = gap.release + 1; p < gap.due; ++p) load[p % 40] -= gap.size;
    tree.take(gap);
    area.take(gap);
  }
  CHECK(relieving > 20);
  CHECK(tree.fits());
}

TEST_CASE("a swap-in is issued at the slot that a walk backwards from its use finds") {
  Machine machine;
  machine.h2d = {BytesPerSecond{1'000'000'000}, 3_ns};
  Random random{5};
  std::size_t early = 0;
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t n = 2 + static_cast<std::uint32_t>(random.below(30));
    StepCircle circle;
    circle.start.emplace_back(0);
    for (std::uint32_t i = 0; i < n; ++i) {
      circle.start.push_back(circle.start.back() + Nanos{static_cast<std::int64_t>(random.below(30))});
      circle.load.emplace_back(static_cast<std::int64_t>(100 + random.below(100)));
    }
    std::vector<Gap> gaps;
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < 12; ++i) {
      const auto release = static_cast<std::uint32_t>(random.below(n));
      const std::uint32_t due = release + 2 + static_cast<std::uint32_t>(random.below(n - 1));
      gaps.push_back({.out = VersionId{i},
                      .in = VersionId{i},
                      .size = Bytes{static_cast<std::int64_t>(random.below(40))},
                      .release = release,
                      .due = due,
                      .crosses = due >= n});
      all.push_back(i);
    }
    const Bytes limit{static_cast<std::int64_t>(100 + random.below(150))};
    const std::vector<PlannedGap> planned = schedule_late(circle, gaps, all, machine, limit);
    CHECK(planned == late_by_slots(circle, gaps, all, machine, limit));
    for (const PlannedGap& each : planned) early += each.issue < gaps[each.gap].due ? 1 : 0;
  }
  CHECK(early > 1'000);
}

}  // namespace tidepool::range_tree_test
