// The heuristics of the DTR family, and sqrt-n, on graphs that can be computed by hand.
#include <vector>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::dtr_test {

namespace {

using Touch = TraceBuilder::Touch;

/// A graph of ops with one output each.
struct Graph {
  TraceBuilder builder;
  BufferId make(const std::vector<BufferId>& reads, Bytes size, Nanos duration, Phase phase = Phase::kUnknown) {
    const BufferId made = builder.alloc({.size = size});
    std::vector<Touch> touches;
    for (const BufferId read : reads) touches.push_back({read});
    touches.push_back({made, Access::kWrite});
    Op op;
    op.duration = duration;
    op.phase = phase;
    builder.run(op, touches);
    return made;
  }
};

Result run(const Trace& trace, const std::string& policy, Bytes capacity) {
  RunSpec spec;
  spec.pool = "ideal";
  spec.policy = policy;
  spec.capacity = capacity;
  return simulate(trace, spec, true);
}

/// The buffers that are dropped, in order.
std::vector<std::uint32_t> dropped(const Trace& trace, const Result& result) {
  std::vector<std::uint32_t> buffers;
  for (const Action& action : result.realised.actions)
    if (action.verb == Verb::kDrop) buffers.push_back(trace.version(VersionId{action.subject}).buffer.value());
  return buffers;
}

}  // namespace

TEST_CASE("each heuristic chooses by its own formula") {
  // Three buffers of independent ops (60 B), then one of 20 B at t = 60 ns. With 70 B, one of the three must be
  // dropped. No op has read the three buffers yet, so the last use of each is its write.
  //   buffer  size  cost  last used  staleness  local c / (m s)  msps c / m
  //   0       20    40    40         20         40 / 400 = 1/10  2
  //   1       10    10    50         10         10 / 100 = 1/10  1
  //   2       30    10    60         0          infinite         1/3
  Graph graph;
  graph.make({}, 20_B, 40_ns);
  graph.make({}, 10_B, 10_ns);
  graph.make({}, 30_B, 10_ns);
  graph.builder.only_given_outputs();
  graph.make({}, 20_B, 5_ns);
  const Trace trace = graph.builder.finish();
  CHECK(dropped(trace, run(trace, "lru", 70_B)) == std::vector<std::uint32_t>{0});
  CHECK(dropped(trace, run(trace, "largest", 70_B)) == std::vector<std::uint32_t>{2});
  CHECK(dropped(trace, run(trace, "msps", 70_B)) == std::vector<std::uint32_t>{2});
  CHECK(dropped(trace, run(trace, "dtr-local", 70_B)) == std::vector<std::uint32_t>{1});  // 0 and 1 tie: the last
  CHECK(dropped(trace, run(trace, "dtr", 70_B)) == std::vector<std::uint32_t>{1});
  CHECK(dropped(trace, run(trace, "dtr-eq", 70_B)) == std::vector<std::uint32_t>{1});
  CHECK(dropped(trace, run(trace, "lru", 80_B)).empty());
}

TEST_CASE("dropped neighbours raise a buffer's cost for dtr and dtr-eq, dropped ancestors raise it for msps") {
  // A chain 0 -> 1 -> 2 of 10 B each (cost 10, 10, 12), and buffer 3 of 10 B and cost 15, without neighbours. An op of
  // 1,000 ns follows and writes 10 B, so that staleness is nearly the same for all, and all 50 B are in use. The next
  // op requests 20 B, which takes two victims.
  //   First victim: 0 and 1 cost 10. Formulas with staleness drop 0, which is staler. msps has a tie and drops the
  //   last of the two, 1.
  //   Second victim: after the drop of 0, 1 costs 10 + 10 = 20 for dtr and dtr-eq, 2 costs 12, 3 costs 15: they drop 2.
  //   For dtr-local, 1 still costs 10. For msps, after the drop of 1, 0 costs 10 (1 is no ancestor of 0) and 2 costs
  //   22: it drops 0.
  Graph graph;
  const BufferId a = graph.make({}, 10_B, 10_ns);
  const BufferId b = graph.make({a}, 10_B, 10_ns);
  graph.make({b}, 10_B, 12_ns);
  graph.make({}, 10_B, 15_ns);
  graph.make({}, 10_B, 1'000_ns);
  graph.make({}, 20_B, 1_ns);
  graph.builder.only_given_outputs();
  const Trace trace = graph.builder.finish();
  CHECK(dropped(trace, run(trace, "dtr", 50_B)) == std::vector<std::uint32_t>{0, 2});
  CHECK(dropped(trace, run(trace, "dtr-eq", 50_B)) == std::vector<std::uint32_t>{0, 2});
  CHECK(dropped(trace, run(trace, "dtr-local", 50_B)) == std::vector<std::uint32_t>{0, 1});
  CHECK(dropped(trace, run(trace, "msps", 50_B)) == std::vector<std::uint32_t>{1, 0});
}

TEST_CASE("sqrt-n keeps k checkpoints and one segment of a chain, and runs the other ops once more") {
  // n = 16 ops of 100 ns write 10 B each. Each backward op reads the last gradient and one output, and frees both.
  // Numbers of buffers without a policy: 16 outputs and 2 gradients, less one freed output: 17 at most. There are k = 4
  // segments of s = 4 ops. When the backward phase begins, 3 checkpoints, 4 outputs and 1 gradient are live: 8. In
  // segment j < 4, j - 1 checkpoints, 4 outputs and 2 gradients: 8 at most. In each of 3 segments, the 3 ops without a
  // checkpoint are recomputed.
  Graph graph;
  std::vector<BufferId> outputs{graph.make({}, 10_B, 100_ns, Phase::kForward)};
  for (int i = 1; i < 16; ++i) outputs.push_back(graph.make({outputs.back()}, 10_B, 100_ns, Phase::kForward));
  BufferId gradient = graph.make({outputs.back()}, 10_B, 200_ns, Phase::kBackward);
  for (int i = 14; i >= 0; --i) {
    graph.builder.free(outputs[static_cast<std::size_t>(i + 1)]);
    const BufferId next = graph.make({gradient, outputs[static_cast<std::size_t>(i)]}, 10_B, 200_ns, Phase::kBackward);
    graph.builder.free(gradient);
    gradient = next;
  }
  graph.builder.free(outputs.front());
  const Trace trace = graph.builder.finish();
  CHECK(trace.ideal_peak() == 170_B);

  const Result result = run(trace, "sqrt-n(segment=40B)", kNoLimit);
  CHECK(result.totals.peak == 80_B);
  CHECK(result.totals.recompute == 900_ns);
  CHECK(result.totals.eviction_count == 9);
  CHECK(run(trace, "sqrt-n(segment=40B)", 80_B).outcome == Outcome::kOk);
  CHECK(run(trace, "sqrt-n(segment=40B)", 79_B).outcome != Outcome::kOk);

  CHECK(run(trace, "sqrt-n", 170_B).totals.recompute == 0_ns);  // all fits: nothing is dropped
  CHECK(run(trace, "sqrt-n", 80_B).totals.recompute == 900_ns);
  CHECK(run(trace, "sqrt-n", 79_B).totals.peak <= 80_B);
}

}  // namespace tidepool::dtr_test
