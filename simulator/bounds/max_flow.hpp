// Maximum flow from node 0 to node 1, resumable after capacities have grown.
#pragma once

#include <cstdint>
#include <vector>

namespace tidepool {

/// Dinic's algorithm (Soviet Math. Dokl. 11, 1970) with distances to the sink, on a graph that is fixed once the first
/// flow has been sought. Whole numbers only, so a flow and its cut are exact. All capacities together stay below 2^62,
/// but for kUnlimited ones, of which no path from source to sink consists alone.
class MaxFlow {
 public:
  using Node = std::uint32_t;
  using Edge = std::uint32_t;
  static constexpr Node kSource = 0, kSink = 1;
  static constexpr std::int64_t kUnlimited = std::int64_t{1} << 62;

  explicit MaxFlow(std::size_t nodes) : nodes_{nodes} {}

  Edge add_edge(Node from, Node to, std::int64_t capacity);

  /// Makes a capacity larger by `more` >= 0; the flow found so far stays.
  void widen(Edge edge, std::int64_t more) { residual_[forward_[edge]] += more; }

  /// Adds to the flow until it is the largest. Its amount, in total.
  std::int64_t run();

  /// After run(): whether a node is on the sink's side of the minimum cut with the fewest nodes there.
  bool with_sink(Node node) const { return distance_[node] != kFar; }

  /// A flow to go back to. Cheap: O(edges) to save and to restore.
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
