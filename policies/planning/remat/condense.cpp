#include "policies/planning/remat/condense.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "policies/planning/remat/trace_chain.hpp"

namespace tidepool {
namespace {

class Condenser {
 public:
  explicit Condenser(const Trace& trace)
      : trace_{trace},
        ops_{static_cast<std::uint32_t>(trace.ops().size())},
        backward_{std::min(first_backward_op(trace), ops_)},
        behind_{ops_} {}

  CondensedTrace take(std::size_t most) {
    cut_forward(std::max<std::size_t>(most, 1));
    for (const Buffer& buffer : trace_.buffers())
      if (buffer.born_before) constant_ += buffer.size;
    return finish(live_bytes(trace_), live_bytes_before(trace_));
  }

  CondensedTrace take_stage(const TraceChain& chain, std::size_t index, std::size_t most) {
    const TraceStage& stage = chain.stages[index];
    first_ = stage.first;
    backward_ = stage.window;
    behind_ = index == 0 ? ops_ : chain.stages[index - 1].window;
    if (stage.output_stays) output_ = stage.output;
    cut_stage(stage, std::max<std::size_t>(most, 1));
    result_.graph.first_planned = static_cast<std::uint32_t>(repeatable_);
    return finish(chain.live, chain.live_before);
  }

 private:
  static constexpr std::size_t kNoGroup = std::numeric_limits<std::size_t>::max();

  /// @param live, live_before  by op: bytes while it runs, and before it
  CondensedTrace finish(const std::vector<Bytes>& live, const std::vector<Bytes>& live_before) {
    cut_backward();
    group_of_.assign(ops_, kNoGroup);
    for (std::size_t g = 0; g < groups().size(); ++g)
      for (std::uint32_t op = groups()[g].first; op < groups()[g].behind; ++op) group_of_[op] = g;
    measure(live, live_before);
    connect();
    return std::move(result_);
  }

  std::vector<OpGroup>& groups() { return result_.groups; }

  /// Cuts the forward phase. The op that makes a stage's output begins a group, so that this output alone can be kept.
  void cut_forward(std::size_t most) {
    const std::vector<Saved> all = saved_versions(trace_, backward_);
    Bytes total;
    for (const Saved& saved : all) total += trace_.size(saved.version);
    const Bytes each{total.count() / static_cast<std::int64_t>(most) + 1};
    for (const TraceStage& stage : linearise(trace_, most).stages) {
      const std::uint32_t connects =
          stage.output.valid() ? trace_.version(stage.output).producer.value() : stage.behind;
      cut_between(all, stage.first, connects, each);
      cut_between(all, connects, stage.behind, each);
    }
    repeatable_ = groups().size();
  }

  /// Cuts the forward ops of a stage. Groups without values that may leave are left out.
  void cut_stage(const TraceStage& stage, std::size_t most) {
    std::vector<Saved> values;
    Bytes total;
    for (const Saved& saved : stage.saved) {
      if (saved.version == stage.output || saved.first_again < backward_ || saved.first_again >= behind_) continue;
      values.push_back(saved);
      total += trace_.size(saved.version);
    }
    cut_between(values, stage.first, stage.behind, Bytes{total.count() / static_cast<std::int64_t>(most) + 1});
    std::erase_if(groups(), [](const OpGroup& group) { return group.saved.empty(); });
    repeatable_ = groups().size();
  }

  /// Splits the ops [first, behind) into groups that save about the same number of bytes each.
  void cut_between(const std::vector<Saved>& all, std::uint32_t first, std::uint32_t behind, Bytes each) {
    auto next = std::lower_bound(all.begin(), all.end(), first,
                                 [](const Saved& saved, std::uint32_t op) { return saved.made < op; });
    Bytes sum;
    OpGroup group{.first = first, .behind = first, .saved = {}};
    for (std::uint32_t op = first; op < behind; ++op) {
      for (; next != all.end() && next->made == op; ++next) {
        group.saved.push_back(*next);
        sum += trace_.size(next->version);
      }
      if (op + 1 < behind && sum * 2 < each * 3) continue;
      sum = Bytes{};
      group.behind = op + 1;
      groups().push_back(std::exchange(group, OpGroup{.first = op + 1, .behind = op + 1, .saved = {}}));
    }
  }

  void cut_backward() {
    std::vector<std::uint32_t> starts{backward_};
    std::uint32_t behind_all = backward_;
    for (const OpGroup& group : groups()) {
      std::uint32_t first = ops_;
      for (const Saved& saved : group.saved) {
        first = std::min(first, saved.first_again);
        for (const auto& users : {trace_.readers(saved.version), trace_.viewers(saved.version)})
          if (!users.empty()) behind_all = std::max(behind_all, users.back().value() + 1);
      }
      if (first < ops_) starts.push_back(first);
    }
    starts.push_back(std::min(behind_all, behind_));
    std::erase_if(starts, [&](std::uint32_t op) { return op < backward_ || op > behind_; });
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::uint32_t behind = i + 1 < starts.size() ? starts[i + 1] : behind_;
      if (starts[i] < behind) groups().push_back({.first = starts[i], .behind = behind, .saved = {}});
    }
  }

  void connect() {
    KeepGraph& graph = result_.graph;
    is_saved_.resize(trace_.versions().size());
    seen_.assign(ops_, repeatable_);
    graph.inputs.resize(groups().size());
    for (std::size_t g = 0; g < repeatable_; ++g) {
      graph.last.push_back(static_cast<std::uint32_t>(g));
      for (const Saved& saved : groups()[g].saved) is_saved_[saved.version.index()] = true;
    }
    for (std::uint32_t op = 0; op < ops_; ++op)
      for (const Use& use : trace_.uses(OpId{op})) {
        if (!use.in.valid() || !is_saved_[trace_.root(use.in).index()]) continue;
        const auto from = static_cast<std::uint32_t>(group_of(trace_.root(use.in)));
        const std::size_t to = group_of_[op];
        if (from >= to || to == kNoGroup) continue;
        add_once(graph.inputs[to], from);
        graph.last[from] = std::max(graph.last[from], static_cast<std::uint32_t>(to));
      }
    for (std::size_t g = 0; g < repeatable_; ++g) find_again_inputs(g);
  }

  std::size_t group_of(VersionId v) const { return group_of_[trace_.version(v).producer.index()]; }
  static void add_once(std::vector<std::uint32_t>& nodes, std::uint32_t node) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }

  /// Finds the groups whose values a rerun of this group reads. All producers of its saved values run again, also those
  /// in earlier groups, back to saved values: values in between are no longer resident. The input and output of a stage
  /// are resident.
  void find_again_inputs(std::size_t group) {
    std::vector<std::uint32_t>& inputs = result_.graph.again_inputs.emplace_back();
    Nanos time;
    Bytes workspace, size;
    std::vector<OpId> open;
    const auto run = [&](OpId op) {
      if (op.value() < first_ || seen_[op.index()] == group || trace_.op(op).kind == OpKind::kSource) return;
      seen_[op.index()] = group;
      time += trace_.op(op).duration;
      workspace = std::max(workspace, besides_[op.index()] - constant_);
      open.push_back(op);
    };
    for (const Saved& saved : groups()[group].saved) {
      run(OpId{saved.made});
      size += trace_.size(saved.version);
    }
    while (!open.empty()) {
      const OpId op = open.back();
      open.pop_back();
      for (const Use& use : trace_.uses(op)) {
        if (!use.in.valid()) continue;
        const VersionId root = trace_.root(use.in);
        if (root == output_) continue;
        if (is_saved_[root.index()] && group_of(root) != group)
          add_once(inputs, static_cast<std::uint32_t>(group_of(root)));
        else if (trace_.version(root).producer.valid())
          run(trace_.version(root).producer);
      }
    }
    result_.graph.time.push_back(time);
    result_.graph.workspace.push_back(workspace);
    result_.graph.size.push_back(size);
  }

  /// Computes the bytes that are live at each op and before each group, without saved values of forward groups.
  void measure(const std::vector<Bytes>& live, const std::vector<Bytes>& live_before) {
    const std::vector<std::uint32_t> end = ends_of_versions(trace_);
    std::vector<Bytes> saved(ops_ + 1);  // by op: live bytes of saved values
    for (const OpGroup& group : groups())
      for (const Saved& each : group.saved) {
        saved[each.made] += trace_.size(each.version);
        saved[end[each.version.index()]] -= trace_.size(each.version);
      }
    for (std::uint32_t op = 1; op <= ops_; ++op) saved[op] += saved[op - 1];
    for (std::uint32_t op = 0; op < ops_; ++op) besides_.push_back(live[op] - saved[op]);
    KeepGraph& graph = result_.graph;
    for (const OpGroup& group : groups()) {
      Bytes during;
      for (std::uint32_t op = group.first; op < group.behind; ++op) during = std::max(during, besides_[op]);
      graph.during.push_back(during);
      const Bytes kept_before = group.first == 0 ? Bytes{} : saved[group.first - 1];
      graph.before.push_back(std::max(live_before[group.first] - kept_before, Bytes{}));
    }
  }

  const Trace& trace_;
  std::uint32_t ops_, backward_, behind_;  // groups that cannot be rerun cover [backward_, behind_)
  std::uint32_t first_ = 0;                // ops before this one cannot be rerun either
  VersionId output_ = {};                  // the stage's output, if it stays
  std::size_t repeatable_ = 0;             // number of forward groups
  std::vector<std::size_t> group_of_;      // by op
  std::vector<Bytes> besides_;             // by op: live bytes, without saved values
  Bytes constant_;                         // live bytes from before the step
  std::vector<bool> is_saved_;             // by version
  std::vector<std::size_t> seen_;          // by op: the last group that visited it
  CondensedTrace result_;
};

}  // namespace

CondensedTrace condense(const Trace& trace, std::size_t most) { return Condenser{trace}.take(most); }

CondensedTrace condense_stage(const Trace& trace, const TraceChain& chain, std::size_t stage, std::size_t most) {
  return Condenser{trace}.take_stage(chain, stage, most);
}

std::vector<Action> actions_of(const Trace& trace, const CondensedTrace& condensed, const KeepSchedule& schedule) {
  std::vector<Action> actions;
  const auto add = [&](Verb verb, std::uint32_t before, std::uint32_t subject) {
    if (before < trace.ops().size()) actions.push_back({.verb = verb, .before = OpId{before}, .subject = subject});
  };
  const auto drop = [&](std::uint32_t before, std::size_t group) {
    for (const Saved& saved : condensed.groups[group].saved) add(Verb::kDrop, before, saved.version.value());
  };
  for (std::size_t t = condensed.graph.first_planned; t < condensed.groups.size(); ++t) {
    const OpGroup& now = condensed.groups[t];
    const std::size_t values = schedule.kept[t].size();
    std::vector<std::vector<std::size_t>> leaves(values + 1);  // by group: the values that are dropped after it
    for (std::size_t i = 0; i < values; ++i)
      if (const auto last = last_reader(condensed.graph, schedule, t, i))
        leaves[std::min<std::size_t>(*last, values)].push_back(i);
    for (std::size_t k = 0; k < values; ++k) {
      if (schedule.again[t][k])
        for (const Saved& saved : condensed.groups[k].saved) add(Verb::kRun, now.first, saved.made);
      for (const std::size_t i : leaves[k]) drop(now.first, i);
    }
    for (const std::size_t i : leaves[values])
      if (t < condensed.graph.last[i]) drop(now.behind, i);
    const bool is_new = t < condensed.graph.repeatable() && t + 1 < condensed.groups.size();
    if (is_new && t < condensed.graph.last[t] && !schedule.kept[t + 1][t])
      for (const Saved& saved : now.saved)
        add(Verb::kDrop, std::min(saved.last_forward + 1, now.behind), saved.version.value());
  }
  std::stable_sort(actions.begin(), actions.end(),
                   [](const Action& a, const Action& b) { return a.before < b.before; });
  return actions;
}

}  // namespace tidepool
