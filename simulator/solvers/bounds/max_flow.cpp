#include "simulator/solvers/bounds/max_flow.hpp"

#include <algorithm>

namespace tidepool {

MaxFlow::Edge MaxFlow::add_edge(Node from, Node to, std::int64_t capacity) {
  given_.push_back({from, to, capacity});
  return static_cast<Edge>(given_.size() - 1);
}

void MaxFlow::build() {
  first_.assign(nodes_ + 1, 0);
  for (const Given& edge : given_) ++first_[edge.from + 1], ++first_[edge.to + 1];
  for (std::size_t n = 0; n < nodes_; ++n) first_[n + 1] += first_[n];
  std::vector<std::uint32_t> next{first_.begin(), first_.end() - 1};
  const std::size_t arcs = 2 * given_.size();
  head_.resize(arcs), twin_.resize(arcs), residual_.resize(arcs), forward_.resize(given_.size());
  for (std::size_t e = 0; e < given_.size(); ++e) {
    const std::uint32_t there = next[given_[e].from]++, back = next[given_[e].to]++;
    head_[there] = given_[e].to, head_[back] = given_[e].from;
    twin_[there] = back, twin_[back] = there;
    residual_[there] = given_[e].capacity, residual_[back] = 0;
    forward_[e] = there;
  }
  distance_.resize(nodes_);
  next_.resize(nodes_);
}

void MaxFlow::restore(const State& state) {
  residual_ = state.residual;
  flow_ = state.flow;
}

/// Computes distances to the sink, up to that of the source. @return  whether a path leads from the source to the sink
bool MaxFlow::measure() {
  std::fill(distance_.begin(), distance_.end(), kFar);
  queue_.assign(1, kSink);
  distance_[kSink] = 0;
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const Node node = queue_[i];
    for (std::uint32_t arc = first_[node]; arc < first_[node + 1]; ++arc) {
      const Node from = head_[arc];
      if (distance_[from] != kFar || residual_[twin_[arc]] == 0) continue;
      distance_[from] = distance_[node] + 1;
      if (from == kSource) return true;
      queue_.push_back(from);
    }
  }
  return false;
}

/// Fills every shortest path. The path is on an explicit stack, not in recursion; the search goes on at the first full
/// edge of a filled path.
void MaxFlow::block() {
  std::copy(first_.begin(), first_.end() - 1, next_.begin());
  path_.clear();
  for (Node node = kSource;;) {
    if (node == kSink) {
      std::int64_t most = kUnlimited;
      for (const std::uint32_t arc : path_) most = std::min(most, residual_[arc]);
      std::size_t full = path_.size();
      for (std::size_t i = path_.size(); i-- > 0;) {
        residual_[path_[i]] -= most;
        residual_[twin_[path_[i]]] += most;
        if (residual_[path_[i]] == 0) full = i;
      }
      flow_ += most;
      node = head_[twin_[path_[full]]];
      path_.resize(full);
      continue;
    }
    std::uint32_t& arc = next_[node];
    while (arc < first_[node + 1] && (residual_[arc] == 0 || distance_[head_[arc]] + 1 != distance_[node])) ++arc;
    if (arc < first_[node + 1]) {
      path_.push_back(arc);
      node = head_[arc];
    } else if (path_.empty()) {
      return;
    } else {
      node = head_[twin_[path_.back()]];
      path_.pop_back();
      ++next_[node];
    }
  }
}

std::int64_t MaxFlow::run() {
  if (first_.empty()) build();
  while (measure()) block();
  return flow_;
}

}  // namespace tidepool
