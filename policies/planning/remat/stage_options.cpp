#include "policies/planning/remat/stage_options.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "policies/planning/remat/condense.hpp"
#include "simulator/option_values.hpp"

namespace tidepool {
namespace {

/// Bytes of the values that are kept for the first planned node.
Bytes kept_bytes(const KeepGraph& graph, const KeepSchedule& schedule) {
  Bytes sum;
  for (std::size_t i = 0; i < graph.repeatable(); ++i)
    if (schedule.kept[graph.first_planned][i]) sum += graph.size[i];
  return sum;
}

KeepSchedule keep_all(const KeepGraph& graph) {
  std::vector<std::vector<bool>> kept(graph.nodes());
  for (std::size_t t = 0; t < kept.size(); ++t)
    for (std::size_t i = 0; i < std::min(t, graph.repeatable()); ++i) kept[t].push_back(t <= graph.last[i]);
  return complete(graph, std::move(kept));
}

/// The most bytes that a planned node uses with its inputs alone.
Bytes least_peak(const KeepGraph& graph) {
  Bytes most;
  for (std::size_t t = graph.first_planned; t < graph.nodes(); ++t) {
    Bytes needs = graph.during[t];
    for (const std::uint32_t in : graph.inputs[t]) needs += graph.size[in];
    most = std::max(most, needs);
  }
  return most;
}

/// The budget number `index` of `count`: the first is `most`, the last is `least`.
Bytes budget(Bytes most, Bytes least, int index, int count) {
  return count == 1 ? most : most - (most - least) * index / (count - 1);
}

/// The answer for two budgets. known_for() says whether it also answers tighter ones.
struct Answer {
  Bytes peak, kept;                     ///< the budgets
  std::optional<std::size_t> schedule;  ///< its index; none if no schedule fits
  bool known_for(Bytes tighter_peak, Bytes tighter_kept, const std::vector<KeepCost>& costs,
                 const std::vector<Bytes>& sizes) const {
    if (peak < tighter_peak || kept < tighter_kept) return false;
    return !schedule || (costs[*schedule].peak <= tighter_peak && sizes[*schedule] <= tighter_kept);
  }
};

bool is_as_good(const StageOption& a, const StageOption& b) {
  return a.first <= b.first && a.again <= b.again && a.alone <= b.alone && a.backward <= b.backward &&
         a.saved <= b.saved && a.forward_peak <= b.forward_peak && a.backward_peak <= b.backward_peak;
}

/// Turns schedules of one stage into options.
class Stages {
 public:
  Stages(const Trace& trace, TraceChain& chain) : trace_{trace}, chain_{chain} {}

  void add(std::size_t index, const CondensedTrace& condensed, const KeepSchedule& schedule) {
    TraceStage& stage = chain_.stages[index];
    std::vector<StageOption>& options = chain_.chain.stages[index].options;
    const std::vector<bool> keeps = kept_versions(stage, condensed, schedule);
    std::vector<bool> needed = keeps;
    StageOption option = options.front();
    option.again = time_again(trace_, stage, needed);
    for (std::size_t s = 0; s < needed.size(); ++s) {
      if (stage.saved[s].version == stage.output) needed[s] = stage.output_stays;
      if (!keeps[s]) option.saved -= trace_.size(stage.saved[s].version);
    }
    option.alone = time_again(trace_, stage, needed);
    const KeepCost cost = cost_of(condensed.graph, schedule);
    option.backward += cost.again;
    option.forward_peak = forward_peak(stage, keeps);
    option.backward_peak = cost.peak;
    for (const StageOption& other : options)
      if (is_as_good(other, option)) return;
    options.push_back(option);
    stage.options.push_back({keeps, actions_of(trace_, condensed, schedule)});
  }

 private:
  static std::vector<bool> kept_versions(const TraceStage& stage, const CondensedTrace& condensed,
                                         const KeepSchedule& schedule) {
    std::vector<bool> keeps(stage.saved.size(), true);
    for (std::size_t g = 0; g < condensed.graph.repeatable(); ++g) {
      if (schedule.kept[condensed.graph.first_planned][g]) continue;
      for (const Saved& saved : condensed.groups[g].saved)
        for (std::size_t s = 0; s < keeps.size(); ++s)
          if (stage.saved[s].version == saved.version) keeps[s] = false;
    }
    return keeps;
  }

  /// Most bytes during the stage's forward ops if it drops versions that it does not keep after their last use.
  Bytes forward_peak(const TraceStage& stage, const std::vector<bool>& keeps) const {
    std::vector<Bytes> gone(stage.behind - stage.first + 1);
    for (std::size_t s = 0; s < keeps.size(); ++s)
      if (!keeps[s] && stage.saved[s].last_forward < stage.behind)
        gone[stage.saved[s].last_forward + 1 - stage.first] += trace_.size(stage.saved[s].version);
    Bytes peak, away;
    for (std::uint32_t op = stage.first; op < stage.behind; ++op) {
      away += gone[op - stage.first];
      peak = std::max(peak, chain_.live[op] - away);
    }
    return peak;
  }

  const Trace& trace_;
  TraceChain& chain_;
};

}  // namespace

StagePrograms programs_of(const std::string& owner, const Options& options) {
  return {count_of(owner, options, "groups", 30), count_of<int>(owner, options, "saves", 100, 2),
          count_of<int>(owner, options, "peaks", 100), count_of<int>(owner, options, "nodes", 100'000'000)};
}

std::vector<KeepSchedule> schedules_of(const KeepGraph& graph, const StagePrograms& programs) {
  std::vector<KeepSchedule> schedules{keep_all(graph)};
  std::vector<KeepCost> costs{cost_of(graph, schedules.front())};
  std::vector<Bytes> sizes{kept_bytes(graph, schedules.front())};
  std::vector<Answer> answers{{costs.front().peak, sizes.front(), 0}};
  KeepGraph limited = graph;
  for (int p = 0; p < programs.peaks; ++p)
    for (int s = 0; s < programs.saves; ++s) {
      const Bytes peak = budget(costs.front().peak, least_peak(graph), p, programs.peaks);
      const Bytes kept = budget(std::min(peak, sizes.front()), Bytes{}, s, programs.saves);
      if (std::any_of(answers.begin(), answers.end(),
                      [&](const Answer& answer) { return answer.known_for(peak, kept, costs, sizes); }))
        continue;
      limited.most_kept = kept;
      KeepSolution found = solve_exactly(limited, peak, {.nodes = programs.nodes});
      if (!found.schedule) {
        answers.push_back({peak, kept, {}});
        continue;
      }
      const auto same = std::find(schedules.begin(), schedules.end(), *found.schedule);
      answers.push_back({peak, kept, static_cast<std::size_t>(same - schedules.begin())});
      if (same != schedules.end()) continue;
      costs.push_back(cost_of(graph, *found.schedule));
      sizes.push_back(kept_bytes(graph, *found.schedule));
      schedules.push_back(std::move(*found.schedule));
    }
  schedules.erase(schedules.begin());
  return schedules;
}

void add_options(const Trace& trace, TraceChain& chain, const StagePrograms& programs) {
  Stages stages{trace, chain};
  std::vector<std::pair<KeepGraph, std::vector<KeepSchedule>>> solved;  // by graph without times
  for (std::size_t i = 0; i < chain.stages.size(); ++i) {
    const CondensedTrace condensed = condense_stage(trace, chain, i, programs.groups);
    if (condensed.graph.repeatable() == 0 || condensed.graph.nodes() == condensed.graph.repeatable()) continue;
    KeepGraph timeless = condensed.graph;
    timeless.time.clear();
    auto same = std::find_if(solved.begin(), solved.end(), [&](const auto& each) { return each.first == timeless; });
    if (same == solved.end())
      same = solved.insert(same, {std::move(timeless), schedules_of(condensed.graph, programs)});
    for (const KeepSchedule& schedule : same->second) stages.add(i, condensed, schedule);
  }
}

}  // namespace tidepool
