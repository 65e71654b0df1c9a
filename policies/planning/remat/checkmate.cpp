#include "policies/planning/remat/checkmate.hpp"

#include <algorithm>
#include <numeric>

namespace tidepool {
namespace {

bool contains(const std::vector<std::uint32_t>& nodes, std::size_t node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

/// Values that are resident before node t runs, or before its reruns.
std::size_t values_before(const KeepGraph& graph, std::size_t t) { return std::min(t, graph.repeatable()); }

/// The program for one graph and capacity, with names for its variables.
class Formulation {
 public:
  Formulation(const KeepGraph& graph, Bytes capacity, bool integers)
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
        again_.back().push_back(add(of_use ? 1 : 0, static_cast<double>(graph.time[i].count()) / time_unit_));
      }
    }
    for (std::size_t t = 0; t < graph.nodes(); ++t) {
      link(t);
      limit(t);
    }
  }

  LinearProgram::Solution solve(const LinearProgram::Limits& limits) const { return program_.solve(limits); }
  double time_unit() const { return time_unit_; }
  std::vector<std::vector<bool>> kept(const std::vector<double>& x, double threshold) const {
    std::vector<std::vector<bool>> result;
    for (const auto& row : kept_) {
      result.emplace_back();
      for (const std::uint32_t variable : row) result.back().push_back(x[variable] >= threshold);
    }
    return result;
  }

 private:
  static constexpr double kNone = LinearProgram::kInfinity;

  std::uint32_t add(double most, double cost) {
    return integers_ ? program_.integer(0, most, cost) : program_.variable(0, most, cost);
  }
  double scaled(Bytes size) const { return static_cast<double>(size.count()) / memory_unit_; }

  /// Adds the row: sum of terms >= least.
  void at_least(double least, std::initializer_list<std::pair<std::uint32_t, double>> terms) {
    const std::uint32_t row = program_.row(least, kNone);
    for (const auto& [variable, factor] : terms) program_.add(row, variable, factor);
  }

  /// Adds the constraints that values are resident or recomputed, and that reruns have resident inputs.
  void link(std::size_t t) {
    for (std::size_t i = 0; i < kept_[t].size(); ++i) {
      at_least(-1, {{kept_[t][i], -1}, {again_[t][i], -1}});
      if (t > i + 1) at_least(0, {{kept_[t - 1][i], 1}, {again_[t - 1][i], 1}, {kept_[t][i], -1}});
      for (const std::uint32_t in : graph_.again_inputs[i])
        at_least(0, {{again_[t][in], 1}, {kept_[t][in], 1}, {again_[t][i], -1}});
    }
    for (const std::uint32_t in : graph_.inputs[t]) at_least(1, {{again_[t][in], 1}, {kept_[t][in], 1}});
  }

  /// Limits the memory in use after each node that may run before t, and at t.
  void limit(std::size_t t) {
    std::optional<std::uint32_t> before;
    for (std::size_t k = 0; k <= kept_[t].size(); ++k) {
      const bool is_last = k == kept_[t].size();
      const std::size_t node = is_last ? t : k;
      const std::uint32_t held = program_.variable(0, 1, 0);  // while the node runs
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

  /// Adds variables for values that may be freed after node k, which may run again before t.
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
  std::vector<std::vector<std::uint32_t>> kept_, again_;
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

KeepSchedule complete(const KeepGraph& graph, std::vector<std::vector<bool>> kept) {
  KeepSchedule schedule{std::move(kept), {}};
  for (std::size_t t = 0; t < graph.nodes(); ++t) {
    std::vector<bool>& again = schedule.again.emplace_back(schedule.kept[t].size());
    for (const std::uint32_t in : graph.inputs[t])
      if (!schedule.kept[t][in]) again[in] = true;
    for (std::size_t i = again.size(); i-- > 0;) {
      if (t + 1 < graph.nodes() && schedule.kept[t + 1][i] && !schedule.kept[t][i]) again[i] = true;
      if (!again[i]) continue;
      schedule.kept[t][i] = false;  // it is recomputed in any case
      for (const std::uint32_t in : graph.again_inputs[i])
        if (!schedule.kept[t][in]) again[in] = true;
    }
  }
  return schedule;
}

KeepCost cost_of(const KeepGraph& graph, const KeepSchedule& schedule) {
  KeepCost cost;
  for (std::size_t t = 0; t < graph.nodes(); ++t) {
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
  }
  return cost;
}

KeepSolution solve_exactly(const KeepGraph& graph, Bytes capacity, const LinearProgram::Limits& limits) {
  const Formulation formulation{graph, capacity, true};
  const LinearProgram::Solution found = formulation.solve(limits);
  KeepSolution solution{found.status, found.bound * formulation.time_unit(), {}};
  if (!found.x.empty()) solution.schedule = complete(graph, formulation.kept(found.x, 0.5));
  return solution;
}

KeepSolution solve_by_rounding(const KeepGraph& graph, Bytes capacity) {
  KeepSolution solution;
  std::optional<KeepCost> best;
  for (int tenths = 10; tenths >= 8; --tenths) {
    const Formulation formulation{graph, capacity - capacity / 10 * (10 - tenths), false};
    const LinearProgram::Solution found = formulation.solve({});
    if (tenths == 10) {
      solution.status = found.status;
      solution.bound = found.bound * formulation.time_unit();
    }
    if (found.x.empty()) break;
    for (int threshold = 1; threshold <= 9; ++threshold) {
      KeepSchedule schedule = complete(graph, formulation.kept(found.x, 0.1 * threshold));
      const KeepCost cost = cost_of(graph, schedule);
      if (best &&
          (best->peak <= capacity ? cost.peak > capacity || cost.again >= best->again : cost.peak >= best->peak))
        continue;
      best = cost;
      solution.schedule = std::move(schedule);
    }
  }
  return solution;
}

}  // namespace tidepool
