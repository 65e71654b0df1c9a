#include "policies/hybrid/tide/relaxation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "policies/hybrid/tide/interval_classes.hpp"
#include "simulator/solvers/bounds/linear_program.hpp"

namespace tidepool {
namespace {

constexpr double kUnlimited = LinearProgram::kInfinity;

/// Builds and reads the linear program of Relaxation.
class Program {
 public:
  Program(const StepModel& model, const TimeGroups& groups, const std::vector<double>& room, bool waits)
      : model_{model},
        groups_{groups},
        count_{static_cast<std::int64_t>(groups.size())},
        room_{room},
        out_rate_{in_mib(Bytes{model.machine.d2h.rate.count()}) / 1000},
        in_rate_{in_mib(Bytes{model.machine.h2d.rate.count()}) / 1000},
        found_{find_interval_classes(model, groups, above(room))} {
    add_lanes();
    if (waits) add_waits();
    add_absent_bytes();
    add_classes();
    add_swap_outs();
    add_shadows();
  }

  std::optional<RelaxedPlan> solve() {
    const LinearProgram::Solution solution = program_.solve();
    if (solution.status != LinearProgram::Status::kOptimal) return std::nullopt;
    const std::vector<double> reduced_cost = program_.reduced_costs(solution.duals);
    RelaxedPlan plan{Treatments(model_.gaps.size()), std::vector<double>(model_.gaps.size())};
    for (std::size_t c = 0; c < found_.classes.size(); ++c) read(c, solution.x, reduced_cost, plan);
    return plan;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  /// Variables and rows of a group.
  struct Group {
    std::uint32_t wait, out, in, ready, leaving, early, early_whole, absent;
    std::uint32_t out_time = 0, in_time = 0, ready_balance = 0, early_balance = 0, leaving_least = 0, early_least = 0,
                  memory = 0, absent_sum = 0;
  };

  static std::vector<bool> above(const std::vector<double>& room) {
    std::vector<bool> above;
    for (const double each : room) above.push_back(each < 0);
    return above;
  }
  std::size_t wrapped(std::int64_t position) const {
    return static_cast<std::size_t>((position % count_ + count_) % count_);
  }
  Group& at(std::int64_t position) { return groups_at_[wrapped(position)]; }
  /// The share of a copy's rate that copies the other way take, if both move data.
  double shared_out() const { return 1e6 / static_cast<double>(model_.machine.d2h.duplex_ppm) - 1; }
  double shared_in() const { return 1e6 / static_cast<double>(model_.machine.h2d.duplex_ppm) - 1; }

  /// Copies in the time of each group, the queues between groups, and memory.
  void add_lanes() {
    constexpr double kExcessCost = 3;  // times the time to copy it out and in
    for (std::size_t j = 0; j < groups_.size(); ++j)
      groups_at_.push_back({.wait = program_.variable(0, kUnlimited, 1),
                            .out = program_.variable(0, kUnlimited, 0),
                            .in = program_.variable(0, kUnlimited, 0),
                            .ready = program_.variable(0, kUnlimited, 0),
                            // Content that is leaving delays the start of the next iteration.
                            .leaving = program_.variable(0, j == 0 ? 0 : kUnlimited, 0),
                            .early = program_.variable(0, kUnlimited, 0),
                            .early_whole = program_.variable(0, kUnlimited, 0),
                            .absent = program_.variable(-kUnlimited, kUnlimited, 0)});
    for (std::int64_t j = 0; j < count_; ++j) {
      Group& group = at(j);
      const Group& next = at(j + 1);
      const double work = in_ms(groups_.work(static_cast<std::size_t>(j)));
      group.out_time = program_.row(-kUnlimited, work);
      add(group.out_time, {{group.out, 1}, {group.in, shared_out()}, {group.wait, -1}});
      group.in_time = program_.row(-kUnlimited, work);
      add(group.in_time, {{group.in, 1}, {group.out, shared_in()}, {group.wait, -1}});
      group.ready_balance = program_.row(0, 0);
      add(group.ready_balance, {{next.ready, 1}, {group.ready, -1}, {group.out, 1}});
      group.early_balance = program_.row(0, 0);
      add(group.early_balance, {{next.early, 1}, {group.early, -1}, {group.in, -1}});
      group.leaving_least = program_.row(0, kUnlimited);
      add(group.leaving_least, {{group.leaving, 1}, {group.ready, -1}});
      add(program_.row(-kUnlimited, 0), {{group.out, 1}, {group.ready, -1}});
      group.early_least = program_.row(0, kUnlimited);
      add(group.early_least, {{group.early_whole, 1}, {group.early, -1}, {group.in, -1}});
      group.memory = program_.row(-kUnlimited, room_[static_cast<std::size_t>(j)]);
      const std::uint32_t excess = program_.variable(0, kUnlimited, kExcessCost * (1 / out_rate_ + 1 / in_rate_));
      add(group.memory, {{group.leaving, out_rate_}, {group.early_whole, in_rate_}, {group.absent, -1}, {excess, -1}});
    }
  }

  /// Copies while the first op of a group waits.
  void add_waits() {
    for (std::int64_t j = 0; j < count_; ++j) {
      const std::uint32_t wait = program_.variable(0, kUnlimited, 1), in = program_.variable(0, kUnlimited, 0),
                          out = program_.variable(0, kUnlimited, 0);
      const Group& before = at(j - 1);
      program_.add(before.early_balance, in, -1);
      program_.add(before.ready_balance, out, 1);
      add(program_.row(-kUnlimited, 0), {{in, 1}, {out, shared_in()}, {wait, -1}});
      add(program_.row(-kUnlimited, 0), {{out, 1}, {in, shared_out()}, {wait, -1}});
      add(program_.row(-kUnlimited, 0), {{out, 1}, {before.ready, -1}, {before.out, 1}});
    }
  }

  /// The absent bytes of a group are those of the group before, plus those that leave and less those that come.
  void add_absent_bytes() {
    for (std::int64_t j = 0; j < count_; ++j) {
      at(j).absent_sum = program_.row(0, 0);
      program_.add(at(j).absent_sum, at(j).absent, 1);
      if (j > 0) program_.add(at(j).absent_sum, at(j - 1).absent, -1);
    }
  }

  /// Counts a share of `bytes` as absent in the groups [begin, end).
  void absent_during(std::int64_t begin, std::int64_t end, std::uint32_t share, double bytes) {
    const auto within = [&](std::int64_t first, std::int64_t last) {
      program_.add(at(first).absent_sum, share, -bytes);
      if (last < count_) program_.add(at(last).absent_sum, share, bytes);
    };
    if (end - begin >= count_) return within(0, count_);
    const auto first = static_cast<std::int64_t>(wrapped(begin)), last = first + end - begin;
    within(first, std::min(last, count_));
    if (last > count_) within(0, last - count_);
  }

  /// The shares of each class, and what they take: time of swap-ins and recomputations, and memory while swap-ins come.
  void add_classes() {
    constexpr double kTieBreak = 0.006;  // cost of copies that delay nothing, in times of their swap-in
    for (const IntervalClass& each : found_.classes) {
      const std::uint32_t copied = program_.variable(0, each.can_copy() ? 1 : 0, kTieBreak * each.in);
      copied_.push_back(copied);
      dropped_.push_back(kNone);
      program_.add(at(each.end - 1).early_balance, copied, each.in);
      if (each.can_copy()) {
        absent_during(each.copy_begin, each.copy_end, copied, each.bytes);
        for (std::int64_t p = each.copy_end; p < each.end; ++p) program_.add(at(p).early_least, copied, each.in);
      }
      if (each.recompute < 0) continue;
      const std::uint32_t dropped = dropped_.back() = program_.variable(0, 1, each.recompute);
      add(program_.row(-kUnlimited, 1), {{copied, 1}, {dropped, 1}});
      program_.add(at(each.due).out_time, dropped, -each.recompute);
      program_.add(at(each.due).in_time, dropped, -each.recompute);
      absent_during(each.begin, each.end, dropped, each.bytes);
    }
    // Content that is dropped once is not copied in another interval: the host would have it.
    for (const auto& [content, intervals] : found_.by_content)
      for (const std::uint32_t i : intervals)
        for (const std::uint32_t other : intervals)
          if (const std::uint32_t dropped = dropped_[found_.class_of[i]]; other != i && dropped != kNone)
            add(program_.row(-kUnlimited, 1), {{dropped, 1}, {copied_[found_.class_of[other]], 1}});
  }

  /// Swap-outs: one for all intervals of a content, unless the content begins on the host.
  void add_swap_outs() {
    std::vector<bool> done(found_.classes.size());
    for (const auto& [content, intervals] : found_.by_content) {
      const std::uint32_t first = found_.class_of[intervals.front()];
      const std::uint32_t made = model_.gaps[intervals.front()].made;
      if (made == Gap::kUnchanged) continue;
      const auto host = found_.on_host.find(content);
      if (intervals.size() == 1 && host == found_.on_host.end()) {
        if (!done[first]) add_swap_out(copied_[first], found_.classes[first], found_.classes[first].out);
        done[first] = true;
        continue;
      }
      const double out = in_ms(model_.out[intervals.front()]);
      if (made == Gap::kBefore && host != found_.on_host.end()) {
        for (const std::uint32_t i : intervals) {
          const std::uint32_t swap_out = program_.variable(0, 1, 0);
          add(program_.row(0, kUnlimited),
              {{swap_out, 1}, {copied_[found_.class_of[i]], -1}, {copied_[found_.class_of[host->second]], 1}});
          add_swap_out(swap_out, found_.classes[found_.class_of[i]], out);
        }
        continue;
      }
      const std::uint32_t swap_out = program_.variable(0, 1, 0);
      for (const std::uint32_t i : intervals)
        add(program_.row(0, kUnlimited), {{swap_out, 1}, {copied_[found_.class_of[i]], -1}});
      add_swap_out(swap_out, found_.classes[first], out);
    }
  }

  /// Content is ready to leave once it is made; its bytes do not count as leaving before its release.
  void add_swap_out(std::uint32_t share, const IntervalClass& each, double time) {
    program_.add(at(each.made).ready_balance, share, -time);
    const std::int64_t released = each.release + 1;
    const std::int64_t end =
        std::min(each.can_copy() ? std::max(released, each.copy_begin) : released, each.made + 1 + count_);
    for (std::int64_t p = each.made + 1; p < end; ++p)
      if (p < released || wrapped(p) != 0) program_.add(at(p).leaving_least, share, time);
  }

  /// The bytes of a whole buffer count for the mean time of its copy.
  void add_shadows() {
    double bytes = 0, in = 0, out = 0;
    for (const IntervalClass& each : found_.classes) {
      if (!each.can_copy()) continue;
      for (const std::uint32_t i : each.members) {
        const double size = in_mib(model_.gaps[i].size);
        bytes += size, in += size * in_ms(model_.in[i]), out += size * in_ms(model_.out[i]);
      }
    }
    if (bytes <= 0) return;
    for (std::int64_t j = 0; j < count_; ++j) {
      cast_shadow(j, 1, in / bytes,
                  [&](Group& to, const Group& from, double share) { program_.add(to.early_least, from.in, -share); });
      cast_shadow(j, -1, out / bytes, [&](Group& to, const Group& from, double share) {
        program_.add(to.leaving_least, from.out, -share);
      });
    }
  }
  template <class Add>
  void cast_shadow(std::int64_t j, std::int64_t direction, double time, Add add) {
    for (std::int64_t away = 1; away < count_ && time > 1e-9; ++away) {
      const std::size_t other = wrapped(j + direction * away);
      const auto position = static_cast<std::int64_t>(other);
      const double duration = std::max(1e-9, in_ms(groups_.at(position + 1) - groups_.at(position)));
      add(at(j), groups_at_[other], std::min(1.0, time / duration));
      time -= duration;
    }
  }

  /// Rounds the shares of a class: its larger members first take the larger share.
  void read(std::size_t c, const std::vector<double>& share, const std::vector<double>& reduced_cost,
            RelaxedPlan& plan) const {
    const IntervalClass& each = found_.classes[c];
    const double unit = 0.0005 * in_ms(model_.circle.period());
    double copied = each.bytes * share[copied_[c]],
           dropped = dropped_[c] == kNone ? 0 : each.bytes * share[dropped_[c]];
    double reduced = std::abs(reduced_cost[copied_[c]]);
    if (dropped_[c] != kNone) reduced = std::min(reduced, std::abs(reduced_cost[dropped_[c]]));
    std::vector<std::uint32_t> members = each.members;
    std::sort(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
      return model_.gaps[a].size != model_.gaps[b].size ? model_.gaps[a].size > model_.gaps[b].size : a < b;
    });
    for (const std::uint32_t i : members) {
      const double size = in_mib(model_.gaps[i].size);
      plan.weight[i] = 1 / (1 + reduced * size / each.bytes / unit);
      if (members.size() == 1) {
        if (copied + dropped >= 0.5 * size) plan.rounded[i] = copied >= dropped ? How::kCopied : How::kDropped;
      } else if (copied >= 0.5 * size && (copied >= dropped || dropped < 0.5 * size)) {
        plan.rounded[i] = How::kCopied;
        copied -= size;
      } else if (dropped >= 0.5 * size) {
        plan.rounded[i] = How::kDropped;
        dropped -= size;
      }
    }
  }

  struct Term {
    std::uint32_t variable;
    double factor;
  };
  void add(std::uint32_t row, std::initializer_list<Term> terms) {
    for (const Term& term : terms) program_.add(row, term.variable, term.factor);
  }

  const StepModel& model_;
  const TimeGroups& groups_;
  std::int64_t count_;
  const std::vector<double>& room_;  // by group, in MiB; negative: above the capacity
  double out_rate_, in_rate_;        // MiB/ms
  IntervalClasses found_;
  LinearProgram program_;
  std::vector<Group> groups_at_;
  std::vector<std::uint32_t> copied_, dropped_;  // by class: variables
};

}  // namespace

void Relaxation::set_more_load(const std::vector<Bytes>& more) {
  std::fill(more_load_.begin(), more_load_.end(), Bytes{});
  for (std::size_t k = 0; k < more.size(); ++k) {
    Bytes& group = more_load_[groups_.group(k)];
    group = std::max(group, model_.circle.load[k] + more[k] - groups_.load(groups_.group(k)));
  }
}

std::optional<RelaxedPlan> Relaxation::solve(Bytes capacity, bool waits) const {
  std::vector<double> room;
  for (std::size_t j = 0; j < groups_.size(); ++j) room.push_back(in_mib(capacity - groups_.load(j) - more_load_[j]));
  return Program{model_, groups_, room, waits}.solve();
}

}  // namespace tidepool
