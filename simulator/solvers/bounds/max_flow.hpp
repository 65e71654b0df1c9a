// Maximum flow from node 0 to node 1, resumable after capacities have grown.
#pragma once

#include <cstdint>
#include <vector>

namespace tidepool {

/// Dinic's algorithm (Soviet Math. Dokl. 11, 1970) with distances to the sink. The graph is fixed once the first flow
/// has been sought. All numbers are whole, so a flow and its cut are exact. The capacities must add up to less than
/// 2^62, except kUnlimited ones, and no path from source to sink may consist of these alone.
class MaxFlow {
 public:
  using Node = std::uint32_t;
  using Edge = std::uint32_t;
  static constexpr Node kSource = 0, kSink = 1;
  static constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;

  explicit MaxFlow(std::size_t nodes) : nodes_{nodes} {}

  Edge add_edge(Node from, Node to, std::int64_t capacity);

  /// Increases a capacity by `more` >= 0. The flow found so far stays. Call only after the first run().
  void widen(Edge edge, std::int64_t more) { residual_[forward_[edge]] += more; }

  /// Increases the flow to its maximum. @return  the total flow
  std::int64_t run();

  /// After run(): whether a node is on the sink's side of a minimum cut, the one with the fewest nodes on that side.
  bool with_sink(Node node) const { return distance_[node] != kFar; }

  /// A saved flow, to return to later. Saving and restoring cost O(edges).
  struct State {
    std::vector<std::int64_t> residual;
    std::int64_t flow = 0;
  };
  State save() const { return {residual_, flow_}; }
  void restore(const State& state);

 private:
  static constexpr std::uint32_t kFar = 0xffffffff;
  struct Given {
    Node from, to;
    std::int64_t capacity;
  };
  void build();
  bool measure();
  void block();

  std::size_t nodes_;
  std::vector<Given> given_;
  std::vector<std::uint32_t> forward_;  // by edge: its arc
  // Arcs of node n are [first_[n], first_[n + 1]).
  std::vector<std::uint32_t> first_, next_, twin_;
  std::vector<Node> head_;
  std::vector<std::int64_t> residual_;
  std::vector<std::uint32_t> distance_;
  std::vector<Node> queue_;
  std::vector<std::uint32_t> path_;
  std::int64_t flow_ = 0;
};

}  // namespace tidepool
