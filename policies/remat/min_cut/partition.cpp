#include "policies/remat/min_cut/partition.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <set>
#include <utility>

#include "policies/planning/remat/knapsack.hpp"
#include "simulator/solvers/bounds/max_flow.hpp"

namespace tidepool {
namespace {

constexpr std::uint32_t kFar = 1'000'000'000;  // distance if no path leads to the backward phase

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

}  // namespace tidepool
