#include "policies/planning/remat/trace_chain.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "policies/planning/remat/condense.hpp"
#include "simulator/option_values.hpp"

namespace tidepool {

namespace {

/// Finds stages and computes their times and sizes.
class Lineariser {
 public:
  Lineariser(const Trace& trace, std::size_t most)
      : trace_{trace},
        ops_{static_cast<std::uint32_t>(trace.ops().size())},
        backward_{std::min(first_backward_op(trace), ops_)},
        saved_{saved_versions(trace, backward_)} {
    for (const Saved& saved : saved_) total_ += trace.size(saved.version);
    std::erase_if(saved_, [&](const Saved& saved) { return trace.size(saved.version) * 1000 < total_; });
    cut();
    merge(std::max<std::size_t>(most, 1));
    find_windows();
    measure();
  }

  TraceChain take() { return std::move(result_); }

 private:
  std::vector<TraceStage>& stages() { return result_.stages; }

  /// Cuts at all articulation points.
  void cut() {
    // By op: the number of versions made before it that it or a later forward op uses, and the sum of their ids.
    std::vector<std::int64_t> crossing(backward_ + 1), ids(backward_ + 1);
    for (std::uint32_t op = 0; op < backward_; ++op) {
      if (trace_.op(OpId{op}).kind == OpKind::kSource) continue;
      for (const VersionId v : trace_.made(OpId{op})) {
        if (trace_.size(v) * 1000 < total_ || trace_.size(v) == Bytes{}) continue;
        std::uint32_t last = op;
        for (const auto& users : {trace_.readers(v), trace_.viewers(v)})
          for (const OpId user : users)
            if (user.value() < backward_) last = std::max(last, user.value());
        for (const auto& [at, sign] : {std::pair{op + 1, 1}, std::pair{last + 1, -1}}) {
          crossing[at] += sign;
          ids[at] += sign * static_cast<std::int64_t>(v.value());
        }
      }
    }
    std::vector<bool> is_saved(trace_.versions().size());
    for (const Saved& saved : saved_)
      if (saved.first_again < ops_) is_saved[saved.version.index()] = true;
    stages().assign(1, {});
    for (std::uint32_t op = 1; op < backward_; ++op) {
      crossing[op] += crossing[op - 1];
      ids[op] += ids[op - 1];
      if (crossing[op] != 1) continue;
      const VersionId v{static_cast<std::size_t>(ids[op])};
      if (!is_saved[v.index()] || trace_.version(v).producer.value() < stages().back().first) continue;
      stages().back().behind = op;
      stages().back().output = v;
      stages().push_back({.first = op, .behind = op, .window = 0, .output = {}, .saved = {}});
    }
    stages().back().behind = backward_;
    std::size_t stage = 0;
    for (const Saved& saved : saved_) {
      while (saved.made >= stages()[stage].behind) ++stage;
      stages()[stage].saved.push_back(saved);
    }
  }

  Bytes saved_bytes(const TraceStage& stage) const {
    Bytes sum;
    for (const Saved& saved : stage.saved) sum += trace_.size(saved.version);
    return sum;
  }

  void merge(std::size_t most) {
    std::vector<Bytes> sizes;
    for (const TraceStage& stage : stages()) sizes.push_back(saved_bytes(stage));
    while (stages().size() > most) {
      std::size_t least = 0;
      for (std::size_t i = 1; i + 1 < sizes.size(); ++i)
        if (sizes[i] + sizes[i + 1] < sizes[least] + sizes[least + 1]) least = i;
      TraceStage& into = stages()[least];
      TraceStage& from = stages()[least + 1];
      into.behind = from.behind;
      into.output = from.output;
      into.saved.insert(into.saved.end(), from.saved.begin(), from.saved.end());
      sizes[least] += sizes[least + 1];
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(least) + 1);
      stages().erase(stages().begin() + static_cast<std::ptrdiff_t>(least) + 1);
    }
  }

  /// The backward step of the last stage begins with the backward phase. That of another stage begins when this phase
  /// first reads the stage's input, or a saved value other than its output. If it reads neither, the step begins after
  /// the first read of the output. It begins no earlier than the next stage's.
  void find_windows() {
    std::uint32_t last = backward_;
    for (std::size_t i = stages().size(); i-- > 0;) {
      TraceStage& stage = stages()[i];
      std::uint32_t window = kNever;
      std::uint32_t output_again = kNever;
      for (const Saved& saved : stage.saved) {
        std::uint32_t& again = saved.version == stage.output ? output_again : window;
        again = std::min(again, saved.first_again);
      }
      if (i > 0)
        for (const Saved& saved : stages()[i - 1].saved)
          if (saved.version == stages()[i - 1].output) window = std::min(window, saved.first_again);
      if (window == kNever && output_again != kNever) window = output_again + 1;
      const bool is_last = i + 1 == stages().size();
      stage.window = last = is_last || window == kNever ? last : std::max(last, std::min(window, ops_));
    }
  }

  void measure() {
    const std::vector<Bytes> live = live_bytes(trace_), before = live_bytes_before(trace_);
    const std::vector<std::uint32_t> end = ends_of_versions(trace_);
    Bytes constant;
    for (const Buffer& buffer : trace_.buffers())
      if (buffer.born_before) constant += buffer.size;
    // Saved values of earlier stages do not count for a stage.
    std::vector<Bytes> away(ops_ + 1), dropped(ops_ + 1);
    for (const TraceStage& stage : stages())
      for (const Saved& saved : stage.saved) {
        const Bytes size = trace_.size(saved.version);
        const std::uint32_t until = std::min(stage.window, end[saved.version.index()]);
        if (stage.behind < until) away[stage.behind] -= size, away[until] += size;
        // If a stage keeps nothing, its values do not count after their last use in it.
        if (saved.version != stage.output && saved.last_forward + 1 < stage.behind)
          dropped[saved.last_forward + 1] -= size, dropped[stage.behind] += size;
      }
    std::vector<Bytes>&kept = result_.live, &ready = result_.live_before;
    kept.resize(ops_), ready.resize(ops_);
    std::vector<Bytes> swept(ops_);  // by op: live bytes if its stage keeps nothing
    Bytes gone, gone_here;
    for (std::uint32_t op = 0; op < ops_; ++op) {
      gone += away[op];
      gone_here += dropped[op];
      kept[op] = live[op] + gone - constant;
      swept[op] = kept[op] + gone_here;
      ready[op] = before[op] + gone - constant;
    }
    const auto most = [](const std::vector<Bytes>& values, std::uint32_t first, std::uint32_t behind) {
      Bytes peak;
      for (std::uint32_t op = first; op < behind; ++op) peak = std::max(peak, values[op]);
      return peak;
    };
    for (std::size_t i = 0; i < stages().size(); ++i) {
      TraceStage& stage = stages()[i];
      Nanos first, backward;
      for (std::uint32_t op = stage.first; op < stage.behind; ++op) first += trace_.op(OpId{op}).duration;
      stage.output_stays = !stage.output.valid() || end[stage.output.index()] > stage.window;
      const std::uint32_t window_end = i == 0 ? ops_ : stages()[i - 1].window;
      for (std::uint32_t op = stage.window; op < window_end; ++op) backward += trace_.op(OpId{op}).duration;
      Bytes gradient;
      if (stage.window < ops_) {
        gradient = ready[stage.window];
        for (const Saved& saved : stage.saved)
          if (end[saved.version.index()] > stage.window) gradient -= trace_.size(saved.version);
        gradient = std::max(gradient, Bytes{});
      }
      std::vector<bool> all(stage.saved.size(), true), alone = all, output_only(all.size());
      for (std::size_t s = 0; s < all.size(); ++s)
        if (stage.saved[s].version == stage.output) alone[s] = stage.output_stays, output_only[s] = true;
      const Nanos again = time_again(trace_, stage, output_only);
      const Bytes output = stage.output.valid() ? trace_.size(stage.output) : Bytes{};
      result_.chain.stages.push_back(
          {first,
           again,
           output,
           most(swept, stage.first, stage.behind),
           gradient,
           {{first, time_again(trace_, stage, all), time_again(trace_, stage, alone), backward, saved_bytes(stage),
             most(kept, stage.first, stage.behind), most(kept, stage.window, window_end)}}});
      stage.options.push_back({std::move(all), {}});
    }
  }

  const Trace& trace_;
  std::uint32_t ops_, backward_;
  std::vector<Saved> saved_;
  Bytes total_;
  TraceChain result_;
};

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

Nanos time_again(const Trace& trace, const TraceStage& stage, const std::vector<bool>& wanted) {
  std::vector<bool> needed(stage.behind - stage.first);
  for (std::size_t s = 0; s < wanted.size(); ++s)
    if (wanted[s]) needed[stage.saved[s].made - stage.first] = true;
  Nanos time;
  for (std::uint32_t op = stage.behind; op-- > stage.first;) {
    if (!needed[op - stage.first]) continue;
    time += trace.op(OpId{op}).duration;
    for (const Use& use : trace.uses(OpId{op})) {
      if (!use.in.valid()) continue;
      const OpId producer = trace.version(trace.root(use.in)).producer;
      if (producer.valid() && producer.value() >= stage.first) needed[producer.value() - stage.first] = true;
    }
  }
  return time;
}

TraceChain linearise(const Trace& trace, std::size_t most) { return Lineariser{trace, most}.take(); }

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
