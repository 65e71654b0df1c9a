// The orders of XLA's memory schedulers, on the graph of their source, and on steps where each of them is the best.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/graph_trace.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

namespace tidepool::xla_order_test {

using tests::Graph;
using tests::two_branches;

namespace {

/// The run at a capacity, and the order of its ops; empty for the recorded order.
std::pair<Result, std::vector<std::uint32_t>> run_at(const Trace& trace, const std::string& policy, Bytes capacity) {
  const RunSpec spec{.pool = "ideal", .policy = policy, .capacity = capacity, .machine = tests::uneven()};
  Result result = simulate(trace, spec, true);
  std::vector<std::uint32_t> order;
  if (result.realised.order) order = result.realised.order->ops;
  if (result.outcome == Outcome::kOk) CHECK(replay(trace, spec, result.realised) == result.totals);
  return {std::move(result), std::move(order)};
}

TraceBuilder::Touch written(BufferId buffer) { return {buffer, Access::kWrite, Evidence::kSchema}; }
TraceBuilder::Touch read(BufferId buffer) { return {buffer, Access::kRead, Evidence::kSchema}; }

/// The graph in the comment of ListScheduler. B, D and E read A; C reads B; F reads D and E; G reads C and F. B and F
/// make 2 B, the others 1 B. The recorded order is A D B E C F G. All buffers are freed at the end, so 9 B are live at
/// G.
Trace graph_of_the_comment() {
  Graph graph;
  const std::uint32_t a = graph.op(1_B, {}), d = graph.op(1_B, {a}), b = graph.op(2_B, {a}), e = graph.op(1_B, {a}),
                      c = graph.op(1_B, {b}), f = graph.op(2_B, {d, e});
  graph.op(1_B, {c, f});
  return graph.finish();
}

}  // namespace

TEST_CASE("XLA's list scheduler defers the op with the largest output, as in its source") {
  // Ops: A 0, D 1, B 2, E 3, C 4, F 5, G 6. An op's rank is the bytes that it frees, less those that it makes. After A,
  // these are ready: D and E (-1 B each), B (-2 B). E was added last and is first. Then D follows, although it does not
  // free A, which B reads too. Then F frees D and E and makes 2 B: 0 B. B frees A and makes 2 B: -1 B.
  const auto [result, order] = run_at(graph_of_the_comment(), "xla-order(scheduler=list)", 6_B);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(order == std::vector<std::uint32_t>{0, 3, 1, 5, 2, 4, 6});
  CHECK(result.totals.peak == 5_B);  // A, D, E and F
  CHECK(result.totals.makespan == result.baseline);
}

TEST_CASE("XLA's depth-first scheduler begins with the branch that leads to the most bytes") {
  // x (10 B) reads X (30 B), y (10 B) reads Y (20 B). The list scheduler takes Y (-20 B) before X (-30 B), and then y
  // (+10 B); its peak is at x, 10 + 30 + 10 B. The depth-first scheduler takes x (40 B lead to it) before y (30 B); it
  // has 30 + 10 B at x, and 10 + 20 + 10 B at y.
  const Trace trace = two_branches();
  const auto [list, list_order] = run_at(trace, "xla-order(scheduler=list)", 59_B);
  CHECK(list_order == std::vector<std::uint32_t>{1, 3, 0, 2, 4});
  CHECK(list.totals.peak == 50_B);
  const auto [dfs, dfs_order] = run_at(trace, "xla-order(scheduler=dfs)", 59_B);
  CHECK(dfs_order == std::vector<std::uint32_t>{0, 2, 1, 3, 4});
  CHECK(dfs.totals.peak == 40_B);
  // By default, the policy takes the order with the lowest peak.
  const auto [best, best_order] = run_at(trace, "xla-order", 40_B);
  REQUIRE(best.outcome == Outcome::kOk);
  CHECK(best_order == dfs_order);
}

TEST_CASE("XLA's post-order takes operands in their order") {
  // The last op reads the outputs of op 0 (10 B) and op 2 (30 B, made from 2 B). Depth first would begin with op 1.
  Graph graph;
  const std::uint32_t small = graph.op(10_B, {}), seed = graph.op(2_B, {}), large = graph.op(30_B, {seed});
  graph.op(1_B, {small, large});
  const Trace trace = graph.finish();
  CHECK(run_at(trace, "xla-order(scheduler=postorder)", 42_B).second == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(run_at(trace, "xla-order(scheduler=dfs)", 42_B).second == std::vector<std::uint32_t>{1, 2, 0, 3});
}

TEST_CASE("XLA's list scheduler counts the bytes that a workspace takes, but never the bytes that it frees") {
  // X makes 10 B with a workspace of 30 B, Y makes 20 B. Y (-20 B) comes before X (-40 B), although X leaves fewer
  // bytes. In the recorded order, all is freed at the end: 61 B are live at once.
  TraceBuilder build;
  const BufferId x = build.alloc({.size = 10_B}), workspace = build.alloc({.size = 30_B}),
                 y = build.alloc({.size = 20_B}), end = build.alloc({.size = 1_B});
  build.run({.duration = 10_ns}, {written(x), written(workspace)});
  build.run({.duration = 10_ns}, {written(y)});
  build.run({.duration = 10_ns}, {read(x), read(y), written(end)});
  for (const BufferId buffer : {x, workspace, y}) build.free(buffer);
  CHECK(run_at(build.finish(), "xla-order(scheduler=list)", 60_B).second == std::vector<std::uint32_t>{1, 0, 2});
}

TEST_CASE("XLA's schedulers count the root as a reader of content that outlives the step") {
  // C (1 B) reads the outputs of B (10 B) and A; D (10 B) reads that of C. B's output outlives the step, so it has one
  // more reader than A's. So B comes first. The list scheduler takes it although A makes as many bytes and was added
  // last; the depth-first one takes it although A makes more. In the recorded order, A's output is freed at the end.
  for (const auto& [policy, size] :
       {std::pair{"xla-order(scheduler=list)", 10_B}, {"xla-order(scheduler=dfs)", 12_B}}) {
    TraceBuilder build;
    const BufferId a = build.alloc({.size = size}), b = build.alloc({.size = 10_B}), c = build.alloc({.size = 1_B}),
                   d = build.alloc({.size = 10_B});
    build.run({.duration = 10_ns}, {written(b)});
    build.run({.duration = 10_ns}, {written(a)});
    build.run({.duration = 10_ns}, {read(a), read(b), written(c)});
    build.run({.duration = 10_ns}, {read(c), written(d)});
    build.free(a);
    CHECK(run_at(build.finish(), policy, size + 20_B).second == std::vector<std::uint32_t>{0, 1, 2, 3});
  }
}

TEST_CASE("XLA's depth-first scheduler sums over operands, not over control predecessors") {
  // 0 makes s (10 B), 1 makes 50 B from it, 2 overwrites s, 3 makes 20 B, and 4 reads the outputs of 2 and 3. 2 reads
  // nothing, so no bytes lead to it, and 3 comes first, although 60 B come before 2. In the recorded order, all is
  // freed at the end.
  TraceBuilder build;
  const BufferId s = build.alloc({.size = 10_B}), large = build.alloc({.size = 50_B}),
                 other = build.alloc({.size = 20_B}), end = build.alloc({.size = 1_B});
  build.run({.duration = 10_ns}, {written(s)});
  build.run({.duration = 10_ns}, {read(s), written(large)});
  build.run({.duration = 10_ns}, {written(s)});
  build.run({.duration = 10_ns}, {written(other)});
  build.run({.duration = 10_ns}, {read(s), read(other), written(end)});
  for (const BufferId buffer : {s, large, other}) build.free(buffer);
  CHECK(run_at(build.finish(), "xla-order(scheduler=dfs)", 80_B).second == std::vector<std::uint32_t>{3, 0, 1, 2, 4});
}

TEST_CASE("XLA's order is only used if the recorded one does not fit") {
  const Trace trace = two_branches();  // recorded order: all is freed at the end, 30 + 20 + 10 + 10 + 1
  CHECK(run_at(trace, "xla-order", 71_B).second.empty());
  CHECK_FALSE(run_at(trace, "xla-order", 70_B).second.empty());
  CHECK(run_at(trace, "xla-order", 40_B).first.outcome == Outcome::kOk);
  CHECK(run_at(trace, "xla-order", 39_B).first.outcome != Outcome::kOk);
}

}  // namespace tidepool::xla_order_test
