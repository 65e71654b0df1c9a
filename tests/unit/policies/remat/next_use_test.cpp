// Dropping by the time until the next use, on graphs that can be computed by hand.
#include <vector>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::next_use_test {

namespace {

using Touch = TraceBuilder::Touch;

/// Ops with at most one output, of 10 B each.
struct Graph {
  TraceBuilder builder;
  Graph() { builder.only_given_outputs(); }
  BufferId make(const std::vector<BufferId>& reads, Nanos duration, Bytes size = 10_B) {
    const BufferId made = builder.alloc({.size = size});
    std::vector<Touch> touches{{made, Access::kWrite}};
    for (const BufferId read : reads) touches.push_back({read});
    builder.run({.duration = duration}, touches);
    return made;
  }
  void read(const std::vector<BufferId>& reads, Nanos duration) {
    std::vector<Touch> touches;
    for (const BufferId each : reads) touches.push_back({each});
    builder.run({.duration = duration}, touches);
  }
  /// An op of 100 ns that makes and frees a buffer of this size.
  void squeeze(Bytes size) { builder.free(make({}, 100_ns, size)); }
};

/// The first buffers that are dropped with a capacity of 30 B.
std::vector<std::uint32_t> first_dropped(Graph graph, const std::string& policy, std::size_t count) {
  const Trace trace = graph.builder.finish();
  RunSpec spec;
  spec.pool = "ideal";
  spec.policy = policy;
  spec.capacity = 30_B;
  std::vector<std::uint32_t> buffers;
  for (const Action& action : simulate(trace, spec, true).realised.actions)
    if (action.verb == Verb::kDrop && buffers.size() < count)
      buffers.push_back(trace.version(VersionId{action.subject}).buffer.value());
  return buffers;
}

}  // namespace

TEST_CASE("if distance counts, a version with a distant next use is evicted before one that is cheap to recompute") {
  // The next read is 100 ns away for a and c, 1,105 ns for b. The score adds 1 ns to each. The scores in squeeze() are
  //   a 10 ns / (10 B * 101 ns) = 0.0099,  b 30 / (10 * 1,106) = 0.0027,  c 20 / (10 * 101) = 0.0198;
  //   without the distance a 1, b 3, c 2.
  Graph graph;
  const BufferId a = graph.make({}, 10_ns), b = graph.make({}, 30_ns), c = graph.make({}, 20_ns);
  graph.squeeze(10_B);
  graph.read({a, c}, 5_ns);
  graph.read({}, 1'000_ns);
  graph.read({b}, 5_ns);
  CHECK(first_dropped(graph, "next-use", 1) == std::vector{b.value()});
  CHECK(first_dropped(graph, "next-use(distance=0)", 1) == std::vector{a.value()});
}

TEST_CASE("a version that is never read again is evicted first") {
  Graph graph;
  const BufferId a = graph.make({}, 10_ns), b = graph.make({}, 10_ns), c = graph.make({}, 9'000_ns);
  graph.squeeze(10_B);
  graph.read({a, b}, 5_ns);
  CHECK(first_dropped(graph, "next-use", 1) == std::vector{c.value()});
  CHECK(first_dropped(graph, "next-use(cost=own,distance=0)", 1) == std::vector{c.value()});
}

TEST_CASE("each cost counts the absent versions that its definition names") {
  // A parent, its child and another buffer (21 ns) are all read at the same time; two must be dropped. The cheaper one
  // of parent and child is dropped first. Then the other one costs 12 ns alone, and 22 ns together with the absent one.
  const auto family = [](Nanos parent, Nanos child) {
    Graph graph;
    const BufferId first = graph.make({}, parent), second = graph.make({first}, child), third = graph.make({}, 21_ns);
    graph.squeeze(20_B);
    graph.read({first, second, third}, 5_ns);
    return graph;
  };
  const Graph parent_first = family(10_ns, 12_ns), child_first = family(12_ns, 10_ns);
  using Buffers = std::vector<std::uint32_t>;
  CHECK(first_dropped(parent_first, "next-use(cost=own)", 2) == Buffers{0, 1});
  CHECK(first_dropped(parent_first, "next-use(cost=ancestors)", 2) == Buffers{0, 2});
  CHECK(first_dropped(parent_first, "next-use(cost=neighbourhood)", 2) == Buffers{0, 2});
  CHECK(first_dropped(child_first, "next-use(cost=own)", 2) == Buffers{1, 0});
  CHECK(first_dropped(child_first, "next-use(cost=ancestors)", 2) == Buffers{1, 0});
  CHECK(first_dropped(child_first, "next-use(cost=neighbourhood)", 2) == Buffers{1, 2});
}

TEST_CASE("a parent counts as used when its absent child is next used, if that comes before its own next use") {
  // The child costs nothing and is dropped first. The next read is of the child, and recomputing it needs the parent,
  // long before the program reads the parent. So of the two buffers of 10 ns, the other one is dropped, although the
  // program reads it before the parent.
  Graph graph;
  const BufferId parent = graph.make({}, 10_ns), child = graph.make({parent}, 0_ns), other = graph.make({}, 10_ns);
  graph.squeeze(20_B);
  graph.read({child}, 5_ns);
  graph.read({}, 1'000_ns);
  graph.read({other}, 5_ns);
  graph.read({parent}, 5_ns);
  CHECK(first_dropped(graph, "next-use", 2) == std::vector{child.value(), other.value()});
}

}  // namespace tidepool::next_use_test
