#include "policies/planning/remat/checkmate.hpp"

#include <algorithm>
#include <numeric>

namespace tidepool {
namespace {

bool contains(const std::vector<std::uint32_t>& nodes, std::size_t node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

/// The number of values that may be resident before node t runs, or before its reruns.
std::size_t values_before(const KeepGraph& graph, std::size_t t) { return std::min(t, graph.repeatable()); }

/// The program for one graph and capacity, with names for its variables.
class Formulation {
 public:
  Formulation(const KeepGraph& graph, Bytes capacity, bool integers, bool may_page = true)
      : graph_{graph}, integers_{integers}, memory_unit_{static_cast<double>(std::max(capacity, 1_B).count())} {
    Nanos total;
    for (const Nanos time : graph.time) total += time;
    time_unit_ = static_cast<double>(std::max<std::int64_t>(total.count(), 1));
    for (std::size_t t = 0; t < graph.nodes(); ++t) {
      kept_.emplace_back();
      again_.emplace_back();
      for (std::size_t i = 0; i < values_before(graph, t); ++i) {
        const bool of_use = t <= graph.last[i];
        kept_.back().push_back(add(of_use ? 1 : 0, 0));
        again_.back().push_back(add(of_use ? 1 : 0, priced(graph.time[i])));
      }
    }
    if (graph.pages()) page(may_page);
    if (graph.most_again) limit_reruns(*graph.most_again);
    for (std::size_t t = graph.first_planned; t < graph.nodes(); ++t) {
      link(t);
      limit(t);
    }
    if (graph.most_kept) limit_kept(*graph.most_kept);
  }

  LinearProgram::Solution solve(const LinearProgram::Limits& limits) const { return program_.solve(limits); }
  double time_unit() const { return time_unit_; }
  /// The schedule that keeps each value whose variable is at least the threshold. A value comes back by a copy if the
  /// variable of the copy is above 0 and at least that of the rerun.
  KeepSchedule schedule(const std::vector<double>& x, double threshold) const {
    std::vector<std::vector<bool>> kept, paged_in;
    for (std::size_t t = 0; t < kept_.size(); ++t) {
      kept.emplace_back();
      for (const std::uint32_t variable : kept_[t])
        kept.back().push_back(t < graph_.first_planned || x[variable] >= threshold);
      if (!graph_.pages()) continue;
      paged_in.emplace_back();
      for (std::size_t i = 0; i < in_[t].size(); ++i)
        paged_in.back().push_back(x[in_[t][i]] > 0 && x[in_[t][i]] >= x[again_[t][i]]);
    }
    return complete(graph_, std::move(kept), paged_in);
  }

 private:
  static constexpr double kNone = LinearProgram::kInfinity;

  std::uint32_t add(double most, double cost) {
    return integers_ ? program_.integer(0, most, cost) : program_.variable(0, most, cost);
  }
  double priced(Nanos time) const { return static_cast<double>(time.count()) / time_unit_; }
  double scaled(Bytes size) const { return static_cast<double>(size.count()) / memory_unit_; }

  /// Adds the row: sum of terms >= least.
  void at_least(double least, std::initializer_list<std::pair<std::uint32_t, double>> terms) {
    const std::uint32_t row = program_.row(least, kNone);
    for (const auto& [variable, factor] : terms) program_.add(row, variable, factor);
  }

  /// Adds the copies to a second place and back, and the constraints that a copied value is present.
  void page(bool may_page) {
    std::vector<std::vector<std::uint32_t>> on_host, out;
    for (std::size_t t = 0; t < graph_.nodes(); ++t) {
      on_host.emplace_back();
      in_.emplace_back();
      out.emplace_back();
      for (std::size_t i = 0; i < kept_[t].size(); ++i) {
        const bool of_use = t <= graph_.last[i];
        on_host[t].push_back(add(of_use && t > i + 1 ? 1 : 0, 0));
        in_[t].push_back(add(may_page && t < graph_.last[i] ? 1 : 0, priced(graph_.page_in[i])));
        out[t].push_back(add(t < graph_.last[i] ? 1 : 0, priced(graph_.page_out[i])));
        at_least(0, {{on_host[t][i], 1}, {in_[t][i], -1}});
        at_least(0, {{kept_[t][i], 1}, {out[t][i], -1}});
        if (t > i + 1) at_least(0, {{on_host[t - 1][i], 1}, {out[t - 1][i], 1}, {on_host[t][i], -1}});
      }
    }
  }

  void limit_reruns(Nanos most) {
    const std::uint32_t row = program_.row(0, priced(most));
    for (const auto& at_node : again_)
      for (std::size_t i = 0; i < at_node.size(); ++i) program_.add(row, at_node[i], priced(graph_.time[i]));
  }

  void limit_kept(Bytes most) {
    const std::uint32_t row = program_.row(-kNone, scaled(most));
    const std::vector<std::uint32_t>& kept = kept_[graph_.first_planned];
    for (std::size_t i = 0; i < kept.size(); ++i) program_.add(row, kept[i], scaled(graph_.size[i]));
  }

  /// Adds the constraints that values are resident or recomputed, and that reruns have resident inputs.
  void link(std::size_t t) {
    for (std::size_t i = 0; i < kept_[t].size(); ++i) {
      at_least(-1, {{kept_[t][i], -1}, {again_[t][i], -1}});
      if (t > i + 1 && graph_.pages())
        at_least(0, {{kept_[t - 1][i], 1}, {again_[t - 1][i], 1}, {in_[t - 1][i], 1}, {kept_[t][i], -1}});
      else if (t > i + 1)
        at_least(0, {{kept_[t - 1][i], 1}, {again_[t - 1][i], 1}, {kept_[t][i], -1}});
      for (const std::uint32_t in : graph_.again_inputs[i])
        at_least(0, {{again_[t][in], 1}, {kept_[t][in], 1}, {again_[t][i], -1}});
    }
    for (const std::uint32_t in : graph_.inputs[t]) at_least(1, {{again_[t][in], 1}, {kept_[t][in], 1}});
  }

  /// Limits the memory in use during each possible rerun before node t, and during node t.
  void limit(std::size_t t) {
    std::optional<std::uint32_t> before;
    for (std::size_t k = 0; k <= kept_[t].size(); ++k) {
      const bool is_last = k == kept_[t].size();
      const std::size_t node = is_last ? t : k;
      const std::uint32_t held = program_.variable(0, 1, 0);  // bytes while the node runs
      const std::uint32_t row = program_.row(is_last && t < graph_.repeatable() ? scaled(graph_.size[t]) : 0,
                                             is_last && t < graph_.repeatable() ? scaled(graph_.size[t]) : 0);
      program_.add(row, held, 1);
      if (before)
        program_.add(row, *before, -1);
      else
        for (std::size_t i = 0; i < kept_[t].size(); ++i) program_.add(row, kept_[t][i], -scaled(graph_.size[i]));
      if (!is_last) program_.add(row, again_[t][k], -scaled(graph_.size[k]));
      if (k > 0)
        for (const auto& [i, variable] : freed_) program_.add(row, variable, scaled(graph_.size[i]));
      const std::uint32_t most = program_.row(-kNone, 1 - scaled(is_last ? graph_.during[t] : graph_.before[t]));
      program_.add(most, held, 1);
      if (!is_last) program_.add(most, again_[t][k], scaled(graph_.workspace[k]));
      if (is_last) break;
      before = held;
      free_behind(t, node);
    }
    for (std::size_t i = 0; i < kept_[t].size(); ++i) {
      const std::uint32_t row = program_.row(0, kNone);  // an absent value is not freed
      program_.add(row, kept_[t][i], 1);
      program_.add(row, again_[t][i], 1);
      for (const std::uint32_t variable : frees_[i]) program_.add(row, variable, -1);
    }
    frees_.clear();
    freed_.clear();
  }

  /// Adds variables for the values that may be freed after node k, if k is rerun before t.
  void free_behind(std::size_t t, std::size_t k) {
    freed_.clear();
    frees_.resize(kept_[t].size());
    for (const std::uint32_t i : graph_.again_inputs[k]) {
      if (contains(graph_.inputs[t], i)) continue;
      const std::uint32_t free = add(1, 0);
      at_least(0, {{again_[t][k], 1}, {free, -1}});
      if (t + 1 < graph_.nodes()) at_least(-1, {{kept_[t + 1][i], -1}, {free, -1}});
      for (std::size_t j = k + 1; j < kept_[t].size(); ++j)
        if (contains(graph_.again_inputs[j], i)) at_least(-1, {{again_[t][j], -1}, {free, -1}});
      freed_.emplace_back(i, free);
      frees_[i].push_back(free);
    }
  }

  const KeepGraph& graph_;
  bool integers_;
  double memory_unit_, time_unit_ = 1;
  LinearProgram program_;
  std::vector<std::vector<std::uint32_t>> kept_, again_, in_;
  std::vector<std::pair<std::size_t, std::uint32_t>> freed_;  // after the last visited node
  std::vector<std::vector<std::uint32_t>> frees_;             // by value
};

}  // namespace

std::optional<std::uint32_t> last_reader(const KeepGraph& graph, const KeepSchedule& schedule, std::size_t t,
                                         std::size_t i) {
  if (!schedule.kept[t][i] && !schedule.again[t][i]) return {};
  if (t + 1 < graph.nodes() && schedule.kept[t + 1][i]) return {};
  if (contains(graph.inputs[t], i)) return static_cast<std::uint32_t>(t);
  std::size_t last = i;
  for (std::size_t j = i + 1; j < schedule.again[t].size(); ++j)
    if (schedule.again[t][j] && contains(graph.again_inputs[j], i)) last = j;
  return static_cast<std::uint32_t>(last);
}

KeepSchedule complete(const KeepGraph& graph, std::vector<std::vector<bool>> kept,
                      const std::vector<std::vector<bool>>& paged_in) {
  KeepSchedule schedule{std::move(kept), {}, {}, {}};
  std::vector<std::size_t> kept_at(graph.repeatable());  // by value: the first node that it is kept for; 0: none
  std::vector<bool> is_out(graph.repeatable());
  const auto comes_back = [&](std::size_t t, std::size_t i) {
    if (paged_in.empty() || !paged_in[t][i] || kept_at[i] == 0) return false;
    if (!is_out[i]) schedule.paged_out[kept_at[i]][i] = true;
    is_out[i] = true;
    return true;
  };
  for (std::size_t t = 0; t < graph.nodes(); ++t) {
    std::vector<bool>& again = schedule.again.emplace_back(schedule.kept[t].size());
    if (graph.pages()) schedule.paged_out.emplace_back(again.size()), schedule.paged_in.emplace_back(again.size());
    for (const std::uint32_t in : graph.inputs[t])
      if (!schedule.kept[t][in]) again[in] = true;
    for (std::size_t i = again.size(); i-- > 0;) {
      if (t + 1 < graph.nodes() && schedule.kept[t + 1][i] && !schedule.kept[t][i] && !again[i]) {
        if (comes_back(t, i))
          schedule.paged_in[t][i] = true;
        else
          again[i] = true;
      }
      if (!again[i]) continue;
      schedule.kept[t][i] = false;  // it is recomputed in any case
      for (const std::uint32_t in : graph.again_inputs[i])
        if (!schedule.kept[t][in]) again[in] = true;
    }
    for (std::size_t i = 0; i < again.size(); ++i)
      if (kept_at[i] == 0 && schedule.kept[t][i]) kept_at[i] = t;
  }
  return schedule;
}

KeepCost cost_of(const KeepGraph& graph, const KeepSchedule& schedule) {
  KeepCost cost;
  for (std::size_t t = graph.first_planned; t < graph.nodes(); ++t) {
    const std::size_t values = schedule.kept[t].size();
    Bytes held;
    std::vector<Bytes> leaves(values + 1);  // by node: bytes freed after it
    for (std::size_t i = 0; i < values; ++i) {
      const auto last = last_reader(graph, schedule, t, i);
      if (schedule.kept[t][i] && last != i) held += graph.size[i];
      if (last) leaves[std::min<std::size_t>(*last, values)] += graph.size[i];
    }
    for (std::size_t k = 0; k < values; ++k) {
      if (!schedule.again[t][k]) continue;
      held += graph.size[k];
      cost.again += graph.time[k];
      cost.peak = std::max(cost.peak, graph.before[t] + held + graph.workspace[k]);
      held -= leaves[k];
    }
    if (t < graph.repeatable()) held += graph.size[t];
    cost.peak = std::max(cost.peak, graph.during[t] + held);
    if (!graph.pages()) continue;
    for (std::size_t i = 0; i < values; ++i) {
      if (schedule.paged_in[t][i]) cost.paged += graph.page_in[i];
      if (schedule.paged_out[t][i]) cost.paged += graph.page_out[i];
    }
  }
  return cost;
}

KeepSolution solve_exactly(const KeepGraph& graph, Bytes capacity, const LinearProgram::Limits& limits) {
  const Formulation formulation{graph, capacity, true};
  const LinearProgram::Solution found = formulation.solve(limits);
  KeepSolution solution{found.status, found.bound * formulation.time_unit(), {}};
  if (!found.x.empty()) solution.schedule = formulation.schedule(found.x, 0.5);
  return solution;
}

KeepSolution solve_by_rounding(const KeepGraph& graph, Bytes capacity) {
  KeepSolution solution;
  std::optional<KeepCost> best;
  // Ranks of schedules: over the capacity, over the limit on reruns, within both.
  const auto rank = [&](const KeepCost& cost) {
    return cost.peak > capacity ? 0 : graph.most_again && cost.again > *graph.most_again ? 1 : 2;
  };
  const auto is_better = [&](const KeepCost& cost, const KeepCost& than) {
    if (rank(cost) != rank(than)) return rank(cost) > rank(than);
    return rank(cost) == 0   ? cost.peak < than.peak
           : rank(cost) == 1 ? cost.again < than.again
                             : cost.price() < than.price();
  };
  const auto round_with = [&](bool may_page) {
    for (int tenths = 10; tenths >= 8; --tenths) {
      const Formulation formulation{graph, capacity - capacity / 10 * (10 - tenths), false, may_page};
      const LinearProgram::Solution found = formulation.solve({});
      if (tenths == 10 && may_page) {
        solution.status = found.status;
        solution.bound = found.bound * formulation.time_unit();
      }
      if (found.x.empty()) return;
      for (int threshold = 1; threshold <= 9; ++threshold) {
        KeepSchedule schedule = formulation.schedule(found.x, 0.1 * threshold);
        const KeepCost cost = cost_of(graph, schedule);
        if (best && !is_better(cost, *best)) continue;
        best = cost;
        solution.schedule = std::move(schedule);
      }
    }
  };
  round_with(true);
  if (graph.pages()) round_with(false);
  return solution;
}

std::optional<KeepSchedule> schedule_within(const KeepGraph& graph, Bytes capacity, std::optional<Nanos> exact_time) {
  constexpr int kSteps = 4;
  std::vector<std::vector<bool>> all(graph.nodes());
  for (std::size_t t = 0; t < all.size(); ++t)
    for (std::size_t i = 0; i < values_before(graph, t); ++i) all[t].push_back(t <= graph.last[i]);
  const Bytes most = cost_of(graph, complete(graph, all)).peak;
  if (most <= capacity) return {};
  KeepSolution solution;
  if (exact_time) solution = solve_exactly(graph, capacity, {.time = exact_time});
  for (int step = 0; !solution.schedule && step <= kSteps; ++step)
    solution = solve_by_rounding(graph, capacity + (most - capacity) / kSteps * step);
  return std::move(solution.schedule);
}

}  // namespace tidepool
