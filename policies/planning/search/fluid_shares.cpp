#include "policies/planning/search/fluid_shares.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "simulator/solvers/bounds/fluid.hpp"

namespace tidepool {
namespace {

/// Absences by release, due op and size: several if absences are equal.
class AbsencesOfGaps {
 public:
  AbsencesOfGaps(const Absences& step, std::int64_t ops) : ops_{ops} {
    for (std::size_t i = 0; i < step.absences.size(); ++i) {
      const Absence& absence = step.absences[i];
      if (absence.due == Absence::kNever || absence.size <= Bytes{}) continue;
      const std::int64_t release = ((absence.first - 1) % ops + ops) % ops;
      known_[{release, absence.due % ops, absence.size}].push_back(i);
    }
  }
  /// The absence of a gap, each once; none if there is no such absence.
  std::optional<std::size_t> take(const Gap& gap) {
    std::vector<std::size_t>& like = known_[{gap.release, gap.due % ops_, gap.size}];
    if (like.empty()) return std::nullopt;
    const std::size_t one = like.back();
    like.pop_back();
    return one;
  }

 private:
  std::int64_t ops_;
  std::map<std::tuple<std::int64_t, std::int64_t, Bytes>, std::vector<std::size_t>> known_;
};

/// Groups of consecutive ops, for a program with fewer slots. Content is absent during a group only if it is absent
/// during all its ops.
class Groups {
 public:
  /// @param most  a group of several ops lasts at most the time of the step divided by `most`. If `most` is at least
  ///              the number of ops, each op is its own group
  Groups(const Absences& step, std::size_t most) {
    const Nanos longest = step.starts.back() / static_cast<std::int64_t>(most);
    for (std::size_t k = 0; k < step.load.size(); ++k) {
      const bool alone =
          first_.empty() || most >= step.load.size() || step.starts[k + 1] - step.starts[first_.back()] > longest;
      if (alone) first_.push_back(k);
      group_.push_back(static_cast<std::int64_t>(first_.size() - 1));
    }
  }

  std::size_t size() const { return first_.size(); }
  /// The first op of a group.
  std::size_t first(std::size_t group) const { return first_[group]; }
  /// The op of a group with the largest load.
  std::size_t fullest(const Absences& step, std::size_t group) const {
    const auto begin = step.load.begin() + static_cast<std::ptrdiff_t>(first_[group]);
    const auto end = group + 1 < first_.size() ? step.load.begin() + static_cast<std::ptrdiff_t>(first_[group + 1])
                                               : step.load.end();
    return static_cast<std::size_t>(std::max_element(begin, end) - step.load.begin());
  }

  Absences merged(const Absences& step) const {
    Absences merged;
    for (std::size_t g = 0; g < first_.size(); ++g) {
      merged.starts.push_back(step.starts[first_[g]]);
      merged.load.push_back(step.load[fullest(step, g)]);
    }
    merged.starts.push_back(step.starts.back());
    for (Absence absence : step.absences) {
      absence.first = from(absence.first), absence.last = until(absence.last);
      if (absence.copied_from != Absence::kAlways) absence.copied_from = from(absence.copied_from);
      if (absence.due != Absence::kNever) absence.due = until(absence.due);
      if (absence.producer.valid()) absence.producer = OpId{static_cast<std::size_t>(group_[absence.producer.index()])};
      if (absence.first >= absence.last)
        absence.size = Bytes{}, absence.last = absence.first, absence.due = Absence::kNever;
      merged.absences.push_back(absence);
    }
    return merged;
  }

 private:
  /// The group of a position, and whether it is the first op of that group.
  std::pair<std::int64_t, bool> at(std::int64_t position) const {
    const auto n = static_cast<std::int64_t>(group_.size()), groups = static_cast<std::int64_t>(first_.size());
    const std::int64_t op = (position % n + n) % n, turn = (position - op) / n;
    const std::int64_t group = group_[static_cast<std::size_t>(op)];
    return {turn * groups + group, first_[static_cast<std::size_t>(group)] == static_cast<std::size_t>(op)};
  }
  std::int64_t from(std::int64_t position) const {
    const auto [group, begins] = at(position);
    return begins ? group : group + 1;
  }
  std::int64_t until(std::int64_t position) const { return at(position).first; }

  std::vector<std::int64_t> group_;  // by op
  std::vector<std::size_t> first_;   // by group
};

/// Bytes per ns of a link that copies all gaps one after the other.
double mean_rate(const Link& link, const std::vector<Gap>& gaps) {
  double bytes = 0, time = 0;
  for (const Gap& gap : gaps) {
    bytes += static_cast<double>(gap.size.count());
    time += static_cast<double>(link.time(gap.size).count());
  }
  return time > 0 ? bytes / time : static_cast<double>(link.rate.count()) / 1e9;
}

/// Takes the bytes of dropped gaps out of the load and their absences out of the step, and adds the reruns.
/// @return  the time of the reruns before each op
std::vector<Nanos> drop(Absences& step, const Planning& planning, const std::vector<std::uint32_t>& dropped,
                        const std::vector<std::optional<std::size_t>>& absence_of) {
  const std::size_t n = planning.circle.size();
  const Reruns::Effect effect = planning.reruns.follow({}, dropped);
  Nanos later;
  for (std::size_t k = 0; k < n; ++k) step.starts[k] += later += effect.time[k], step.load[k] += effect.held[k];
  step.starts[n] += later;
  for (const std::uint32_t i : dropped) {
    const Gap& gap = planning.gaps[i];
    for (std::size_t k = gap.release + std::size_t{1}; k < effect.due[i]; ++k) step.load[k] -= gap.size;
    if (absence_of[i]) step.absences[*absence_of[i]].size = Bytes{};
  }
  return effect.time;
}

/// How much detail a program has.
enum class Detail : std::uint8_t { kOps, kGroups };

std::optional<FluidCopies> solve(const Planning& planning, const std::vector<std::uint32_t>& dropped, Detail detail) {
  constexpr std::size_t kMostOpsAndGaps = 6'000;  // the solution of a larger linear program takes seconds
  constexpr std::size_t kMostGroups = 400;        // its plans are hardly slower than with a slot for each op
  const std::vector<Gap>& gaps = planning.gaps;
  const std::size_t n = planning.circle.size();
  if (planning.trace.data().streams.size() != 1 || n + gaps.size() > kMostOpsAndGaps) return std::nullopt;
  Absences step = find_absences(planning.trace, true);
  AbsencesOfGaps absences{step, static_cast<std::int64_t>(n)};
  std::vector<std::optional<std::size_t>> absence_of;
  for (const Gap& gap : gaps) absence_of.push_back(absences.take(gap));
  const std::vector<Nanos> reruns = drop(step, planning, dropped, absence_of);
  const Groups groups{step, detail == Detail::kOps ? n : kMostGroups};
  const auto rate = [&](const Link& link) {
    return detail == Detail::kOps ? static_cast<double>(link.rate.count()) / 1e9 : mean_rate(link, gaps);
  };
  const FluidBound fluid = fluid_bound(groups.merged(step),
                                       {.capacity = planning.capacity,
                                        .out_rate = rate(planning.machine.d2h),
                                        .in_rate = rate(planning.machine.h2d),
                                        .remat = false,
                                        .repeats = true},
                                       {});
  // Without a solution, shares are known only if nothing can be absent.
  const bool solved = fluid.waits.size() == groups.size();
  if (!solved && (detail == Detail::kGroups || !step.absences.empty())) return std::nullopt;
  FluidCopies copies{static_cast<double>(step.starts.back().count()) + fluid.stall, {}, {}, std::vector<double>(n)};
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const double bytes = absence_of[i] ? fluid.copied[*absence_of[i]] : 0;
    copies.shares.push_back(bytes / static_cast<double>(gaps[i].size.count()));
  }
  std::vector<double> waits(n);
  for (std::size_t g = 0; solved && g < groups.size(); ++g) {
    waits[groups.first(g)] = fluid.waits[g];
    copies.prices[groups.fullest(step, g)] = fluid.prices[g];
  }
  double waited = 0;
  Nanos again;
  for (std::size_t k = 0; k <= n; ++k) {
    if (k < n) waited += waits[k], again += reruns[k];
    copies.start.push_back(step.starts[k] + Nanos{static_cast<std::int64_t>(waited)} - again);
  }
  return copies;
}

}  // namespace

std::optional<FluidCopies> fluid_copies(const Planning& planning, const std::vector<std::uint32_t>& dropped) {
  return solve(planning, dropped, Detail::kGroups);
}

std::vector<double> fluid_shares(const Planning& planning) {
  std::optional<FluidCopies> copies = solve(planning, {}, Detail::kOps);
  if (!copies) return {};
  const auto n = static_cast<double>(planning.circle.size());
  for (std::size_t i = 0; i < planning.gaps.size(); ++i)
    copies->shares[i] += 1e-6 * static_cast<double>(planning.gaps[i].due - planning.gaps[i].release) / n;
  return std::move(copies->shares);
}

}  // namespace tidepool
