#include "policies/planning/gaps/schedule.hpp"

#include <algorithm>

#include "policies/planning/gaps/range_tree.hpp"

namespace tidepool {
namespace {

/// Selected gaps, the latest due op in the step first.
std::vector<std::uint32_t> latest_due_first(const std::vector<Gap>& gaps, std::vector<std::uint32_t> selected,
                                            std::size_t ops) {
  std::sort(selected.begin(), selected.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::size_t due_a = gaps[a].due % ops, due_b = gaps[b].due % ops;
    return due_a != due_b ? due_a > due_b : a > b;
  });
  return selected;
}

std::vector<std::uint32_t> by_release(const std::vector<Gap>& gaps, std::vector<std::uint32_t> selected) {
  std::sort(selected.begin(), selected.end(), [&](std::uint32_t a, std::uint32_t b) {
    return gaps[a].release != gaps[b].release ? gaps[a].release < gaps[b].release : a < b;
  });
  return selected;
}

/// The swap-outs, by release. If several gaps have the same version, the copy at the first gap serves all. Content that
/// crossed the boundary has a copy already, and so has content that never changes.
std::vector<std::uint32_t> copied_at_release(const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& selected) {
  std::vector<bool> on_host;  // by version
  const auto note = [&](VersionId v) {
    if (on_host.size() <= v.index()) on_host.resize(2 * v.index() + 1);
    const bool is_new = !on_host[v.index()];
    on_host[v.index()] = true;
    return is_new;
  };
  for (const std::uint32_t i : selected)
    if (gaps[i].crosses) note(gaps[i].in);
  std::vector<std::uint32_t> copied;
  for (const std::uint32_t i : by_release(gaps, selected))
    if (gaps[i].made != Gap::kUnchanged && note(gaps[i].out)) copied.push_back(i);
  return copied;
}

/// Bytes added to ranges of positions. Sums by slot are computed at the end.
class Added {
 public:
  explicit Added(std::size_t slots) : change_(slots + 1) {}

  void add(std::size_t first, std::size_t last, Bytes bytes) {
    for_each_range(change_.size() - 1, first, last, [&](std::size_t from, std::size_t to) {
      change_[from] += bytes;
      change_[to] -= bytes;
    });
  }
  std::vector<Bytes> on(std::vector<Bytes> slots) const {
    Bytes sum;
    for (std::size_t k = 0; k < slots.size(); ++k) slots[k] += sum += change_[k];
    return slots;
  }

 private:
  std::vector<Bytes> change_;
};

/// The first position in [first, last) whose op starts at `time` or later; `last` if none does.
std::uint32_t first_from(const StepCircle& circle, std::uint32_t first, std::uint32_t last, Nanos time) {
  while (first < last) {
    const std::uint32_t middle = first + (last - first) / 2;
    circle.at(middle) < time ? first = middle + 1 : last = middle;
  }
  return first;
}

/// The last position of a gap, up to its due op, that starts at `time` or earlier; at least the one after the release.
std::uint32_t last_until(const StepCircle& circle, const Gap& gap, Nanos time) {
  return first_from(circle, gap.release + 2, gap.due + 1, time + Nanos{1}) - 1;
}

/// The first position in [first, last) from which on no slot has more than `most`; `last` if slot `last` - 1 has more.
std::uint32_t room_from(const RangeTree& load, std::uint32_t first, std::uint32_t last, Bytes most) {
  const auto n = static_cast<std::uint32_t>(load.size());
  if (last > n) {
    const std::uint32_t from = std::max(first, n);
    const auto behind = static_cast<std::uint32_t>(load.behind_last_above(from - n, last - n, most)) + n;
    if (behind > from || first >= n) return behind;
    last = n;
  }
  return static_cast<std::uint32_t>(load.behind_last_above(first, last, most));
}

/// By slot: bytes of swap-outs that are issued at the release.
std::vector<Bytes> bytes_leaving(const StepCircle& circle, const std::vector<Gap>& gaps,
                                 const std::vector<std::uint32_t>& selected, const Machine& machine) {
  const std::size_t n = circle.size();
  const std::vector<std::uint32_t> copied = copied_at_release(gaps, selected);
  std::vector<Bytes> bytes;
  Nanos lane;  // time from which the lane is free
  for (int round = 0; round < 2; ++round) {
    Added under_way{n};
    for (const std::uint32_t i : copied) {
      const Gap& gap = gaps[i];
      lane = std::max(lane, released(circle, gap)) + machine.d2h.time(gap.size);
      under_way.add(gap.release + std::size_t{1}, first_from(circle, gap.release + 1, gap.due, lane), gap.size);
    }
    bytes = under_way.on(std::vector<Bytes>(n));
    lane -= circle.period();
  }
  return bytes;
}

}  // namespace

std::vector<Bytes> load_without(const StepCircle& circle, const std::vector<Gap>& gaps,
                                const std::vector<std::uint32_t>& selected) {
  Added change{circle.size()};
  for (const std::uint32_t i : selected) change.add(gaps[i].release + std::size_t{1}, gaps[i].due, -gaps[i].size);
  return change.on(circle.load);
}

Bytes peak_without(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& selected) {
  const std::vector<Bytes> load = load_without(circle, gaps, selected);
  return load.empty() ? Bytes{} : *std::max_element(load.begin(), load.end());
}

std::vector<PlannedGap> schedule_late(const StepCircle& circle, const std::vector<Gap>& gaps,
                                      const std::vector<std::uint32_t>& selected, const Machine& machine, Bytes limit) {
  const std::size_t n = circle.size();
  const RangeTree absent{load_without(circle, gaps, selected)};
  const std::vector<std::uint32_t> order = latest_due_first(gaps, selected, n);
  std::vector<PlannedGap> planned;
  Nanos lane = circle.period();  // time by which the next scheduled copy must end
  for (int round = 0; round < 2; ++round) {
    RangeTree load = absent;
    planned.clear();
    for (const std::uint32_t i : order) {
      const Gap& gap = gaps[i];
      const Nanos shift = circle.period() * static_cast<std::int64_t>(gap.due / n);
      const Nanos begin = std::min(circle.at(gap.due), lane + shift) - machine.h2d.time(gap.size);
      const std::uint32_t issue = room_from(load, last_until(circle, gap, begin), gap.due, limit - gap.size);
      for_each_range(n, issue, gap.due, [&](std::size_t first, std::size_t last) { load.add(first, last, gap.size); });
      planned.push_back({i, issue});
      // If memory is full when a copy should begin, it begins later, and earlier copies may use the lane until then.
      lane = std::min(lane, std::max(circle.at(issue), begin) - shift);
    }
    if (lane >= Nanos{} || order.empty()) break;
    lane += circle.period();
  }
  return planned;
}

std::vector<Bytes> bytes_under_way(const StepCircle& circle, const std::vector<Gap>& gaps,
                                   const std::vector<std::uint32_t>& selected, const Machine& machine) {
  const std::size_t n = circle.size();
  const std::vector<Bytes> leaving = bytes_leaving(circle, gaps, selected, machine);
  std::vector<Bytes> bytes;
  Nanos lane = circle.period();  // time until which the lane is free
  for (int round = 0; round < 2; ++round) {
    Added under_way{n};
    for (const std::uint32_t i : latest_due_first(gaps, selected, n)) {
      const Gap& gap = gaps[i];
      const Nanos shift = circle.period() * static_cast<std::int64_t>(gap.due / n);
      lane = std::min(lane, circle.at(gap.due) - shift) - machine.h2d.time(gap.size);
      under_way.add(last_until(circle, gap, lane + shift), gap.due, gap.size);
    }
    bytes = under_way.on(leaving);
    lane += circle.period();
  }
  return bytes;
}

std::vector<PlannedGap> schedule_stick_to_limit(const StepCircle& circle, const std::vector<Gap>& gaps,
                                                const std::vector<std::uint32_t>& selected, const Machine& machine,
                                                Bytes limit) {
  const std::size_t n = circle.size();
  std::vector<Bytes> load = load_without(circle, gaps, selected);
  Nanos lane;
  for (const std::uint32_t i : by_release(gaps, selected)) {
    const Gap& gap = gaps[i];
    lane = std::max(lane, released(circle, gap)) + machine.d2h.time(gap.size);
    for (std::uint32_t p = gap.release + 1; p < gap.due && circle.at(p) < lane; ++p) {
      if (load[p % n] + gap.size > limit) {  // ops wait: the step goes on after the copy
        lane = circle.at(p);
        break;
      }
      load[p % n] += gap.size;
    }
  }
  std::vector<PlannedGap> planned;
  lane = circle.period();
  for (const std::uint32_t i : latest_due_first(gaps, selected, n)) {
    const Gap& gap = gaps[i];
    const Nanos shift = circle.period() * static_cast<std::int64_t>(gap.due / n);
    lane = std::min(lane, circle.at(gap.due) - shift) - machine.h2d.time(gap.size);
    std::uint32_t issue = gap.due;
    while (issue > gap.release + 1 && circle.at(issue) > lane + shift && load[(issue - 1) % n] + gap.size <= limit) {
      --issue;
      load[issue % n] += gap.size;
    }
    planned.push_back({i, issue});
  }
  return planned;
}

std::vector<Action> draft_of(const std::vector<Gap>& gaps, const std::vector<PlannedGap>& planned, std::size_t ops) {
  const auto n = static_cast<std::uint32_t>(ops);
  std::vector<Action> draft;
  std::vector<PlannedGap> back = planned;
  std::sort(back.begin(), back.end(), [&](const PlannedGap& a, const PlannedGap& b) {
    if (a.issue % n != b.issue % n) return a.issue % n < b.issue % n;
    return gaps[a.gap].due != gaps[b.gap].due ? gaps[a.gap].due < gaps[b.gap].due : a.gap > b.gap;
  });
  for (const PlannedGap& each : planned) {
    const Gap& gap = gaps[each.gap];
    if (each.copy != 0) {  // a swap-in during the swap-out keeps the version
      const VersionId copied = each.copy <= gap.release ? gap.out : gap.renewed;
      draft.push_back({Verb::kSwapOut, OpId{each.copy}, copied.value(), {}, {}});
      draft.push_back({Verb::kSwapIn, OpId{each.copy}, copied.value(), {}, {}});
    }
    if (gap.release + 1 < n)
      draft.push_back({Verb::kSwapOut, OpId{gap.release + std::size_t{1}}, gap.out.value(), {}, {}});
    if (gap.crosses && each.issue >= n) draft.push_back({Verb::kSwapOut, OpId{0}, gap.in.value(), {}, {}});
  }
  for (const PlannedGap& each : back) {
    const Gap& gap = gaps[each.gap];
    draft.push_back({Verb::kSwapIn, OpId{each.issue % n}, (each.issue < n ? gap.out : gap.in).value(), {}, {}});
  }
  std::stable_sort(draft.begin(), draft.end(), [](const Action& a, const Action& b) { return a.before < b.before; });
  return draft;
}

}  // namespace tidepool
