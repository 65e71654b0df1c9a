#include "policies/remat/min_cut/partition.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <set>
#include <utility>

#include "policies/planning/remat/knapsack.hpp"
#include "policies/planning/remat/saved.hpp"
#include "simulator/solvers/bounds/max_flow.hpp"

namespace tidepool {

namespace {

constexpr std::uint32_t kFar = 1'000'000'000;  // distance if no path leads to the backward phase

class GraphMaker {
 public:
  explicit GraphMaker(const Trace& trace)
      : trace_{trace}, backward_{first_backward_op(trace)}, node_of_(trace.versions().size(), kNever) {}

  TraceGraph make() {
    for (std::uint32_t op = 0; op < trace_.ops().size(); ++op)
      if (trace_.op(OpId{op}).phase != Phase::kOptimizer) add(OpId{op});
    hand_on();
    mark_gone();
    for (std::uint32_t node = static_cast<std::uint32_t>(result_.graph.size()); node-- > 0;) {
      JointNode& each = result_.graph[node];
      if (each.phase == JointNode::Phase::kBackward) continue;
      if (!each.handed_on && !needed_[node]) each.phase = JointNode::Phase::kAside;
      if (each.phase == JointNode::Phase::kForward)
        for (const std::uint32_t input : each.inputs) needed_[input] = true;
    }
    return std::move(result_);
  }

 private:
  std::uint32_t add_node(JointNode node, VersionId value) {
    const auto id = static_cast<std::uint32_t>(result_.graph.size());
    if (value.valid()) node_of_[value.index()] = id;
    result_.graph.push_back(std::move(node));
    result_.values.push_back(value);
    needed_.push_back(false);
    return id;
  }

  Bytes size_of(VersionId v) const { return trace_.buffer(trace_.version(v).buffer).size; }

  /// Whether a version is the workspace of a library call. A PyTorch operator does not have it as an output.
  bool is_workspace(VersionId v) const {
    return trace_.buffer(trace_.version(v).buffer).kind == BufferKind::kWorkspace && trace_.readers(v).empty();
  }

  /// The node of a version. Adds the version as an input if no forward or backward op has made it.
  std::uint32_t node_of(VersionId v) {
    if (node_of_[v.index()] != kNever) return node_of_[v.index()];
    JointNode node{.size = size_of(v), .inputs = {}, .input = true};
    node.parameter = trace_.buffer(trace_.version(v).buffer).kind == BufferKind::kParameter;
    return add_node(std::move(node), v);
  }

  void add(OpId op) {
    const Op& run = trace_.op(op);
    JointNode node{.runtime = run.duration, .inputs = {}, .op = class_of_op(trace_.text(run.name))};
    if (op.value() >= backward_) node.phase = JointNode::Phase::kBackward;
    std::vector<VersionId> made;
    for (const Use& use : trace_.uses(op)) {
      if (use.in.valid()) {
        const std::uint32_t input = node_of(use.in);
        if (std::find(node.inputs.begin(), node.inputs.end(), input) == node.inputs.end()) node.inputs.push_back(input);
      }
      if (!use.out.valid() || is_workspace(use.out) || std::find(made.begin(), made.end(), use.out) != made.end())
        continue;
      made.push_back(use.out);
      node.size += size_of(use.out);
    }
    if (op.value() < backward_ && !node.inputs.empty()) last_made_ = made;
    if (made.size() == 1) {
      add_node(std::move(node), made.front());
      return;
    }
    node.several = true;
    const JointNode::Phase phase = node.phase;
    const std::uint32_t maker = add_node(std::move(node), VersionId{});
    for (const VersionId v : made)
      add_node({.size = size_of(v),
                .inputs = {maker},
                .op = {.recomputable = true, .fusible = true},
                .phase = phase,
                .part = true},
               v);
  }

  void hand_on() {
    for (const VersionId v : trace_.outputs()) {
      const std::uint32_t node = node_of_[v.index()];
      if (node != kNever && result_.graph[node].phase != JointNode::Phase::kBackward && !result_.graph[node].input)
        result_.graph[node].handed_on = true;
    }
    for (const VersionId v : last_made_) result_.graph[node_of_[v.index()]].handed_on = true;
  }

  /// Marks versions that end before the backward phase. A version that the first backward op replaces in
  /// place is still there for that op.
  void mark_gone() {
    const std::vector<std::uint32_t> ends = ends_of_versions(trace_);
    const auto in_backward = [&](OpId op) { return op.value() >= backward_; };
    for (std::size_t node = 0; node < result_.graph.size(); ++node)
      if (const VersionId v = result_.values[node]; v.valid() && !result_.graph[node].input) {
        const VersionId root = trace_.root(v);
        const auto readers = trace_.readers(root), viewers = trace_.viewers(root);
        result_.graph[node].gone = ends[root.index()] <= backward_ &&
                                   std::none_of(readers.begin(), readers.end(), in_backward) &&
                                   std::none_of(viewers.begin(), viewers.end(), in_backward);
      }
  }

  const Trace& trace_;
  std::uint32_t backward_;
  std::vector<std::uint32_t> node_of_;  // by version
  std::vector<bool> needed_;            // by node: whether the values that the forward phase hands on depend on it
  std::vector<VersionId> last_made_;    // outputs of the last forward op that reads a version
  TraceGraph result_;
};

}  // namespace

/// Rules that ban more ops from running again, besides expensive and random ones.
struct Partitioner::Rules {
  bool used_far_apart = false, long_chains = false, materialized = false, unknown = false;
};

struct Partitioner::Cut {
  std::vector<std::uint32_t> kept;
  std::vector<bool> is_banned;
  std::vector<std::uint32_t> banned;  ///< nodes in the order in which they were banned
};

Partitioner::Partitioner(JointGraph graph) : graph_{std::move(graph)} {
  const auto nodes = static_cast<std::uint32_t>(graph_.size());
  users_.resize(nodes);
  forward_order_.resize(nodes);
  std::uint32_t order = 0;
  for (std::uint32_t n = 0; n < nodes; ++n) {
    for (const std::uint32_t input : graph_[n].inputs) users_[input].push_back(n);
    if (forward(n)) forward_order_[n] = order++;
    if (graph_[n].input) inputs_.push_back(n);
  }
  distance_.assign(nodes, 0);
  for (std::uint32_t n = nodes; n-- > 0;) {
    if (!forward(n)) continue;
    distance_[n] = kFar;
    for (const std::uint32_t user : users_[n]) distance_[n] = std::min(distance_[n], distance_[user] + 1);
  }
}

bool Partitioner::fusible(std::uint32_t maker, std::uint32_t user) const {
  return graph_[user].op.joins || (graph_[maker].op.fusible && graph_[user].op.fusible);
}

bool Partitioner::materialized_in_backward(std::uint32_t node) const {
  if (graph_[node].op.view) return false;
  std::vector<std::uint32_t> open{node};
  while (!open.empty()) {
    const std::uint32_t maker = open.back();
    open.pop_back();
    if (graph_[maker].handed_on) return true;
    for (const std::uint32_t user : users_[maker]) {
      if (!forward(user) && !fusible(maker, user)) return true;
      if (graph_[user].op.view) open.push_back(user);
    }
  }
  return false;
}

bool Partitioner::is_banned(std::uint32_t n, const Rules& rules) const {
  const JointNode& node = graph_[n];
  if (node.input || node.part) return false;
  if (rules.unknown ? !node.op.recomputable : node.op.random || node.op.intensive) return true;
  if (rules.materialized && materialized_in_backward(n)) return true;
  Bytes read;
  for (const std::uint32_t input : node.inputs) read += graph_[input].size;
  return node.size * 4 < read;  // the result of a reduction is cheap to keep
}

std::int64_t Partitioner::weight(std::uint32_t n) const {
  const JointNode& node = graph_[n];
  if (node.several || node.gone) return MaxFlow::kUnlimited;
  if (node.parameter) return 0;
  const auto distance = std::clamp<std::uint32_t>(distance_[n], 1, 100);
  const auto bytes = static_cast<std::int64_t>(static_cast<double>(node.size.count()) * std::pow(1.1, distance));
  const bool materialized =
      node.input || node.handed_on ||
      !std::all_of(users_[n].begin(), users_[n].end(), [&](std::uint32_t user) { return fusible(n, user); });
  return materialized ? bytes : bytes * 2;
}

void Partitioner::ban(std::uint32_t node, const std::vector<bool>& may_run_again, Cut& cut) const {
  if (graph_[node].op.view || may_run_again[node]) return;
  if (!cut.is_banned[node]) cut.banned.push_back(node);
  cut.is_banned[node] = true;
}

/// The position of the first forward node that does not fuse with its predecessor, on paths from `starts` up to
/// position `last`; `last` if all fuse.
std::uint32_t Partitioner::first_unfusible(const std::vector<std::uint32_t>& starts, std::uint32_t last) const {
  std::set<std::pair<std::uint32_t, std::pair<bool, std::uint32_t>>> open;  // position, whether it fuses, node
  for (const std::uint32_t start : starts) open.insert({forward_order_[start], {true, start}});
  while (!open.empty()) {
    const auto [order, rest] = *open.begin();
    const auto [fuses, node] = rest;
    open.erase(open.begin());
    if (!fuses) return order;
    for (const std::uint32_t user : users_[node])
      if (forward(user) && forward_order_[user] <= last)
        open.insert({forward_order_[user], {fusible(node, user), user}});
  }
  return last;
}

void Partitioner::ban_used_far_apart(const std::vector<bool>& may_run_again, Cut& cut) const {
  for (std::uint32_t n = 0; n < graph_.size(); ++n) {
    if (!forward(n)) continue;
    std::vector<std::uint32_t> users;
    std::uint32_t last = 0;
    for (const std::uint32_t user : users_[n]) {
      if (!forward(user)) continue;
      users.push_back(user);
      last = std::max(last, forward_order_[user]);
    }
    if (users.empty()) continue;
    const std::uint32_t first = first_unfusible(users, last);
    for (const std::uint32_t user : users)
      if (forward_order_[user] > first && fusible(n, user) && !cut.is_banned[user]) ban(user, may_run_again, cut);
  }
}

void Partitioner::ban_long_chains(const std::vector<bool>& may_run_again, Cut& cut) const {
  constexpr std::uint32_t kLong = 100;
  std::vector<bool> visited(graph_.size());
  for (std::uint32_t start = 0; start < graph_.size(); ++start) {
    if (!forward(start)) continue;
    using Entry = std::pair<std::uint32_t, std::uint32_t>;  // position, node; some nodes occur several times
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    open.emplace(forward_order_[start], start);
    while (!open.empty()) {
      const auto [order, node] = open.top();
      open.pop();
      if (visited[node]) continue;
      visited[node] = true;
      if (order > forward_order_[start] + kLong && open.empty()) {
        ban(node, may_run_again, cut);
        break;
      }
      for (const std::uint32_t user : users_[node])
        if (forward(user) && fusible(node, user) && !cut.is_banned[user]) open.emplace(forward_order_[user], user);
    }
  }
}

/// A minimum cut of the network in which each node is an edge with its weight. Banned nodes are connected to the
/// source, nodes of the backward phase to the sink.
Partitioner::Cut Partitioner::cut(const Rules& rules, const std::vector<bool>& may_run_again) const {
  const auto in = [](std::uint32_t node) { return static_cast<MaxFlow::Node>(2 + 2 * node); };
  const auto out = [](std::uint32_t node) { return static_cast<MaxFlow::Node>(3 + 2 * node); };
  Cut cut{.kept = {}, .is_banned = std::vector<bool>(graph_.size()), .banned = {}};
  for (std::uint32_t n = 0; n < graph_.size(); ++n)
    if (graph_[n].input || (forward(n) && is_banned(n, rules))) ban(n, may_run_again, cut);
  if (rules.used_far_apart) ban_used_far_apart(may_run_again, cut);
  if (rules.long_chains) ban_long_chains(may_run_again, cut);
  MaxFlow flow{2 + 2 * graph_.size()};
  for (const std::uint32_t node : cut.banned) flow.add_edge(MaxFlow::kSource, in(node), MaxFlow::kUnlimited);
  for (std::uint32_t n = 0; n < graph_.size(); ++n) {
    if (backward(n)) {
      flow.add_edge(in(n), MaxFlow::kSink, MaxFlow::kUnlimited);
      continue;
    }
    flow.add_edge(in(n), out(n), weight(n));
    for (const std::uint32_t user : users_[n]) flow.add_edge(out(n), in(user), MaxFlow::kUnlimited);
  }
  flow.run();
  for (std::uint32_t n = 0; n < graph_.size(); ++n)
    if (!backward(n) && !flow.with_sink(in(n)) && flow.with_sink(out(n))) cut.kept.push_back(n);
  return cut;
}

Bytes Partitioner::bytes(const std::vector<std::uint32_t>& nodes) const {
  Bytes sum;
  for (const std::uint32_t node : nodes) sum += graph_[node].size;
  return sum;
}

Partition Partitioner::choose(double budget, KnapsackSolver solver) const {
  const auto result = [&](const std::vector<std::uint32_t>& kept) {
    return Partition{.kept = kept, .bytes = bytes(kept)};
  };
  const std::vector<bool> none(graph_.size());
  if (budget == 0) return result(inputs_);
  const Cut least_time = cut({true, true, true, true}, none);
  const double least = static_cast<double>(bytes(inputs_).count());
  const double most = static_cast<double>(bytes(least_time.kept).count());
  if (budget == 1 || most <= least) return result(least_time.kept);
  const auto share = [&](const Cut& cut) {
    return (static_cast<double>(bytes(cut.kept).count()) - least) / (most - least);
  };
  const Cut known = cut({false, false, false, true}, none);
  if (share(known) < budget) return result(known.kept);
  const Rules dear_only{};
  const Cut cheap_again = cut(dear_only, none);
  if (share(cheap_again) < budget) return result(cheap_again.kept);

  std::vector<std::uint32_t> items;
  for (const std::uint32_t node : cheap_again.banned)
    if (!graph_[node].input && distance_[node] < kFar) items.push_back(node);
  if (items.empty()) return result(cheap_again.kept);
  std::stable_sort(items.begin(), items.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return graph_[a].size > graph_[b].size; });
  std::vector<KnapsackItem> knapsack;
  for (const std::uint32_t node : items) knapsack.push_back({graph_[node].size, graph_[node].runtime});
  const Bytes whole{static_cast<std::int64_t>(most - least)};
  const Bytes limit{static_cast<std::int64_t>(budget * (most - least))};
  const std::vector<bool> taken = solver == KnapsackSolver::kGreedy  ? knapsack_greedily(knapsack, limit)
                                  : solver == KnapsackSolver::kExact ? knapsack_exactly(knapsack, limit)
                                                                     : knapsack_by_shares(knapsack, whole, budget);
  std::vector<bool> may_run_again(graph_.size());
  Partition partition;
  for (std::size_t i = 0; i < items.size(); ++i) {
    partition.kept_items += taken[i];
    may_run_again[items[i]] = !taken[i];
  }
  const Cut last = cut(dear_only, may_run_again);
  partition.kept = last.kept;
  partition.bytes = bytes(last.kept);
  partition.asked_solver = true;
  partition.items = items.size();
  return partition;
}

TraceGraph joint_graph(const Trace& trace) { return GraphMaker{trace}.make(); }

}  // namespace tidepool
