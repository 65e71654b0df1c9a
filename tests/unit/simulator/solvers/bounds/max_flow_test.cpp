#include "simulator/solvers/bounds/max_flow.hpp"

#include <algorithm>
#include <vector>

#include "tests/catch.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::max_flow_test {

namespace {

struct Edge {
  MaxFlow::Node from, to;
  std::int64_t capacity;
};

/// The least capacity of a cut, found by trying every set of nodes on the source's side.
std::int64_t least_cut(std::size_t nodes, const std::vector<Edge>& edges) {
  std::int64_t least = MaxFlow::kUnlimited;
  for (std::uint32_t side = 0; side < (1u << nodes); ++side) {
    const auto with_source = [&](MaxFlow::Node n) { return (side >> n & 1) != 0; };
    if (!with_source(MaxFlow::kSource) || with_source(MaxFlow::kSink)) continue;
    std::int64_t cut = 0;
    for (const Edge& edge : edges)
      if (with_source(edge.from) && !with_source(edge.to)) cut += edge.capacity;
    least = std::min(least, cut);
  }
  return least;
}

/// The capacity of the cut that a flow reports.
std::int64_t reported_cut(const MaxFlow& flow, const std::vector<Edge>& edges) {
  std::int64_t cut = 0;
  for (const Edge& edge : edges)
    if (!flow.with_sink(edge.from) && flow.with_sink(edge.to)) cut += edge.capacity;
  return cut;
}

}  // namespace

TEST_CASE("a maximum flow is as large as the least of all cuts, also after capacities have grown") {
  tests::Random random{7};
  for (int round = 0; round < 200; ++round) {
    const std::size_t nodes = 3 + random.below(6);
    std::vector<Edge> edges;
    for (std::size_t e = 1 + random.below(20); e > 0; --e) {
      const auto from = static_cast<MaxFlow::Node>(random.below(nodes)),
                 to = static_cast<MaxFlow::Node>(random.below(nodes));
      if (from != to) edges.push_back({from, to, static_cast<std::int64_t>(random.below(10))});
    }
    MaxFlow flow{nodes};
    std::vector<MaxFlow::Edge> ids;
    for (const Edge& edge : edges) ids.push_back(flow.add_edge(edge.from, edge.to, edge.capacity));
    REQUIRE(flow.run() == least_cut(nodes, edges));
    REQUIRE(reported_cut(flow, edges) == least_cut(nodes, edges));
    const MaxFlow::State first = flow.save();
    const std::vector<Edge> narrow = edges;
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const auto more = static_cast<std::int64_t>(random.below(5));
      edges[e].capacity += more;
      flow.widen(ids[e], more);
    }
    REQUIRE(flow.run() == least_cut(nodes, edges));
    REQUIRE(reported_cut(flow, edges) == least_cut(nodes, edges));
    flow.restore(first);
    REQUIRE(flow.run() == least_cut(nodes, narrow));
  }
}

}  // namespace tidepool::max_flow_test
