// Values that a minimum cut keeps between forward and backward, and the effect of a budget.
#include "policies/remat/min_cut/partition.hpp"

#include "policies/planning/remat/knapsack.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/two_blocks.hpp"

namespace tidepool::partition_test {

namespace {

using Nodes = std::vector<std::uint32_t>;

JointNode parameter(Bytes size) { return {.size = size, .input = true, .parameter = true}; }
JointNode forward(const char* name, Nodes inputs, Bytes size = 100_B, Nanos runtime = 1_ns) {
  return {.size = size, .runtime = runtime, .inputs = std::move(inputs), .op = class_of_op(name)};
}
JointNode result(JointNode node) {
  node.handed_on = true;
  return node;
}
JointNode backward(Nodes inputs, const char* name = "mul") {
  return {.size = 100_B, .inputs = std::move(inputs), .op = class_of_op(name), .phase = JointNode::Phase::kBackward};
}

Nodes kept(JointGraph graph, double budget = 1) {
  return Partitioner{std::move(graph)}.choose(budget, KnapsackSolver::kTable).kept;
}

}  // namespace

TEST_CASE("an operator's class does not depend on its namespace or overload, or on whether it is in place") {
  for (const char* name : {"aten::add_", "add", "aten::add.Tensor", "aten::relu_"}) {
    INFO(name);
    CHECK(class_of_op(name).recomputable);
    CHECK(class_of_op(name).fusible);
  }
  CHECK(class_of_op("aten::__and__").recomputable);
  CHECK(class_of_op("aten::mm").intensive);
  CHECK_FALSE(class_of_op("aten::mm").fusible);
  CHECK(class_of_op("aten::native_dropout").random);
  CHECK(class_of_op("aten::native_dropout").fusible);
  CHECK(class_of_op("aten::view").view);
  CHECK(class_of_op("aten::cat").joins);
  CHECK_FALSE(class_of_op("aten::transpose").view);  // as in PyTorch's source
  CHECK_FALSE(class_of_op("sgemm_128x64").recomputable);
}

TEST_CASE("a cheap output is recomputed if its input is kept anyway") {
  // Backward reads the product and its relu. The product is kept, and the relu is recomputed from it.
  CHECK(kept({parameter(5_B), forward("mm", {0}), forward("relu", {1}), result(forward("sum", {2}, 4_B)),
              backward({1, 2, 3})}) == Nodes{1, 3});
  // If a separate kernel reads the relu, it must be in memory anyway, so it is kept and not recomputed.
  CHECK(kept({parameter(5_B), forward("mm", {0}), forward("relu", {1}), result(forward("sum", {2}, 4_B)),
              backward({2, 3}, "mm")}) == Nodes{2, 3});
  // Here all readers of the relu are fused with it. Keeping it costs 2 * 1.1 * 100, keeping the product 1.1^2 * 100.
  CHECK(kept({parameter(5_B), forward("mm", {0}), forward("relu", {1}), result(forward("sum", {2}, 4_B)),
              backward({2, 3})}) == Nodes{1, 3});
}

TEST_CASE("an op that reads a value again after an op that does not fuse is not run again") {
  const auto graph = [](const char* between) {
    return JointGraph{parameter(5_B),        forward("relu", {0}),   forward(between, {1}),
                      forward(between, {2}), forward("add", {1, 3}), result(forward("sum", {4}, 4_B)),
                      backward({4})};
  };
  CHECK(kept(graph("mm")) == Nodes{4});
  CHECK(kept(graph("relu")) == Nodes{0});
}

TEST_CASE("a chain of more than a hundred fusible ops is not run again") {
  const auto graph = [](std::uint32_t length) {
    JointGraph chain{parameter(5_B)};
    for (std::uint32_t i = 0; i < length; ++i) chain.push_back(forward("relu", {i}));
    chain.push_back(result(forward("sum", {length}, 4_B)));
    chain.push_back(backward({1, length}));
    return chain;
  };
  CHECK(kept(graph(99)) == Nodes{0});
  CHECK(kept(graph(110)) == Nodes{0, 110});
}

TEST_CASE("of the values of an op with several outputs, the needed ones are kept") {
  JointNode attention = forward("_scaled_dot_product_efficient_attention", {0}, 120_B);
  attention.several = true;
  const auto part = [](Bytes size) {
    return JointNode{.size = size, .inputs = {1}, .op = {.recomputable = true, .fusible = true}, .part = true};
  };
  JointNode aside = part(20_B);
  aside.phase = JointNode::Phase::kAside;
  CHECK(kept({parameter(5_B), attention, part(100_B), aside, result(forward("sum", {2}, 4_B)), backward({3}, "mm")}) ==
        Nodes{3});
}

TEST_CASE("a budget keeps the slowest ops, and the cut finds the cheapest values from which to run the others again") {
  // A chain of four products; backward reads all of them. With budget 1, all four are kept (400 B): 300 B more than the
  // input has. Half of these 300 B are enough for one product. The first three run again from the input (cost 121) or,
  // cheaper, from the first product (cost 110).
  const JointGraph chain{{.size = 100_B, .input = true},          forward("mm", {0}, 100_B, 1_ns),
                         forward("mm", {1}, 100_B, 2_ns),         forward("mm", {2}, 100_B, 3_ns),
                         result(forward("mm", {3}, 100_B, 4_ns)), backward({1, 2, 3, 4})};
  const Partitioner partitioner{chain};
  for (const KnapsackSolver solver : {KnapsackSolver::kTable, KnapsackSolver::kGreedy, KnapsackSolver::kExact}) {
    CHECK(partitioner.choose(1, solver).kept == Nodes{1, 2, 3, 4});
    CHECK_FALSE(partitioner.choose(1, solver).asked_solver);
    CHECK(partitioner.choose(0, solver).kept == Nodes{0});
    const Partition half = partitioner.choose(0.5, solver);
    CHECK(half.asked_solver);
    CHECK(half.items == 4);
    CHECK(half.kept_items == 1);
    CHECK(half.kept == Nodes{1, 4});
    CHECK(half.bytes == 200_B);
    CHECK(partitioner.choose(0.7, solver).kept_items == 2);
  }
}

TEST_CASE("the table of shares rounds to the nearest unit and to 24 bits") {
  const auto taken = [](const std::vector<KnapsackItem>& items, Bytes whole, double share) {
    return knapsack_by_shares(items, whole, share);
  };
  // Sizes in ten-thousandths of the whole: 3333.4 is rounded down, so three items fit; 3333.6 is rounded up, so two
  // fit.
  CHECK(taken(std::vector<KnapsackItem>(3, {33'334_B, 1_ns}), Bytes{100'000}, 1) == std::vector<bool>(3, true));
  CHECK(taken(std::vector<KnapsackItem>(3, {33'336_B, 1_ns}), Bytes{100'000}, 1) ==
        std::vector<bool>{true, true, false});
  // Less than half a unit is rounded to 0.
  CHECK(taken({{4_B, 1_ns}, {100'000_B, 5_ns}}, Bytes{100'000}, 0) == std::vector<bool>{true, false});
  // 2^24 + 1 is not a number of 24 bits; 2^24 + 2 is one.
  CHECK(taken({{10_B, Nanos{1 << 24}}, {10_B, 1_ns}}, 20_B, 1) == std::vector<bool>{true, false});
  CHECK(taken({{10_B, Nanos{1 << 24}}, {10_B, 2_ns}}, 20_B, 1) == std::vector<bool>{true, true});
}

TEST_CASE("the graph of a trace has its values, its phases and its classes") {
  const tests::TwoBlocks blocks;
  const TraceGraph made = joint_graph(blocks.trace);
  const auto count = [&](auto holds) { return std::count_if(made.graph.begin(), made.graph.end(), holds); };
  using Phase = JointNode::Phase;
  CHECK(count([](const JointNode& node) { return node.input; }) == 2);
  CHECK(count([](const JointNode& node) { return node.parameter; }) == 1);
  CHECK(count([](const JointNode& node) { return node.op.intensive; }) == 4);
  CHECK(count([](const JointNode& node) { return node.phase == Phase::kBackward; }) == 6);
  CHECK(count([](const JointNode& node) { return node.handed_on; }) == 1);
  CHECK(count([](const JointNode& node) { return node.phase == Phase::kAside; }) == 0);
}

TEST_CASE("the root gradient, which reads nothing, is not the result of the forward phase") {
  TraceBuilder build;
  const BufferId x = build.existing({.size = 10_B, .kind = BufferKind::kInput}), y = build.alloc({.size = 100_B}),
                 loss = build.alloc({.size = 4_B}), root = build.alloc({.size = 4_B}), g = build.alloc({.size = 10_B});
  const auto op = [&](const char* name, Phase phase) { return Op{.name = build.text(name), .phase = phase}; };
  build.run(op("aten::mm", Phase::kForward), {{x}, {y, Access::kWrite}});
  build.run(op("aten::sum", Phase::kForward), {{y}, {loss, Access::kWrite}});
  build.run(op("aten::ones_like", Phase::kForward), {{root, Access::kWrite}});
  build.run(op("aten::mm", Phase::kBackward), {{root}, {y}, {g, Access::kWrite}});
  build.free(root);
  const TraceGraph made = joint_graph(build.finish());
  // The phases of the ops' values, without x. The loss needs the product; only backward needs the root gradient.
  std::vector<JointNode::Phase> phases;
  for (const JointNode& node : made.graph)
    if (!node.input) phases.push_back(node.phase);
  using enum JointNode::Phase;
  CHECK(phases == std::vector{kForward, kForward, kAside, kBackward});
}

TEST_CASE("a workspace is no value of the graph, and a buffer that is freed before backward cannot be kept") {
  TraceBuilder build;
  const BufferId x = build.existing({.size = 10_B, .kind = BufferKind::kInput}), y = build.alloc({.size = 50_B}),
                 workspace = build.alloc({.size = 900_B, .kind = BufferKind::kWorkspace});
  const auto op = [&](const char* name, Phase phase) { return Op{.name = build.text(name), .phase = phase}; };
  build.run(op("aten::mm", Phase::kForward), {{x}, {y, Access::kWrite}, {workspace, Access::kWrite}});
  build.free(workspace);
  const BufferId z = build.alloc({.size = 100_B}), loss = build.alloc({.size = 40_B}), g = build.alloc({.size = 10_B});
  build.run(op("aten::relu", Phase::kForward), {{y}, {z, Access::kWrite}});
  build.free(y);
  build.run(op("aten::sum", Phase::kForward), {{z}, {loss, Access::kWrite}});
  build.run(op("aten::mm", Phase::kBackward), {{loss}, {z}, {g, Access::kWrite}});
  const TraceGraph made = joint_graph(build.finish());
  REQUIRE(made.graph.size() == 5);  // x, y, z, loss, g
  CHECK(made.graph[1].size == 50_B);
  CHECK_FALSE(made.graph[1].several);
  CHECK((made.graph[1].gone && !made.graph[2].gone && !made.graph[3].gone));
  // y has half the size of z and relu is cheap, so keeping y would be enough; but y has been freed.
  CHECK(kept(made.graph) == Nodes{2, 3});
}

TEST_CASE("content that the first backward op updates in place can be kept for that op") {
  TraceBuilder build;
  const BufferId x = build.existing({.size = 10_B, .kind = BufferKind::kInput}), y = build.alloc({.size = 50_B}),
                 loss = build.alloc({.size = 4_B});
  const auto op = [&](const char* name, Phase phase) { return Op{.name = build.text(name), .phase = phase}; };
  build.run(op("aten::mm", Phase::kForward), {{x}, {y, Access::kWrite}});
  build.run(op("aten::sum", Phase::kForward), {{y}, {loss, Access::kWrite}});
  build.run(op("aten::mul_", Phase::kBackward), {{loss}, {y, Access::kReadWrite}});
  const TraceGraph made = joint_graph(build.finish());
  REQUIRE(made.graph.size() == 4);  // x, y, the loss, and backward's y
  CHECK_FALSE(made.graph[1].gone);
  CHECK(kept(made.graph) == Nodes{1, 2});  // the product is expensive
}

TEST_CASE("min-cut runs cheap ops again if the budget or the capacity requires it") {
  // Kept are x and w (15 B), both h (200 B), both a (120 B), y and g (10 B each). The budget counts the 340 B beyond
  // the inputs x and w. If neither a is kept, 220 of these 340 B are kept.
  const tests::TwoBlocks blocks;
  const auto run = [&](const char* policy, Bytes capacity) {
    const Result result =
        simulate(blocks.trace, {.pool = "ideal", .policy = policy, .capacity = capacity, .machine = {}});
    CHECK(result.outcome == Outcome::kOk);
    return result.totals;
  };
  CHECK(run("min-cut(budget=1)", kNoLimit).recompute == 0_ns);
  CHECK(run("min-cut(budget=1)", kNoLimit).peak == 445_B);
  CHECK(run("min-cut(budget=0.65)", kNoLimit).recompute == 20_us);
  CHECK(run("min-cut(budget=0.65)", kNoLimit).peak == 385_B);
  CHECK(run("min-cut", 445_B).recompute == 0_ns);
  CHECK(run("min-cut", 444_B).recompute == 20_us);
  CHECK(run("min-cut", 385_B).recompute == 20_us);
}

TEST_CASE("min-cut does not drop the loss that the program reads after the backward phase") {
  TraceBuilder build;
  const BufferId x = build.existing({.size = 10_B, .kind = BufferKind::kInput}), y = build.alloc({.size = 100_B});
  const auto op = [&](const char* name, Phase phase) {
    return Op{.name = build.text(name), .phase = phase, .duration = 1_us};
  };
  build.run(op("aten::mm", Phase::kForward), {{x}, {y, Access::kWrite}});
  const BufferId loss = build.alloc({.size = 4_B});
  build.run(op("aten::sum", Phase::kForward), {{y}, {loss, Access::kWrite}});
  const BufferId g = build.alloc({.size = 10_B});
  build.run(op("aten::mm", Phase::kBackward), {{x}, {g, Access::kWrite}});
  build.free(y);
  build.run(op("aten::_local_scalar_dense", Phase::kOptimizer), {{loss}});
  const Result result = simulate(build.finish(), {.pool = "ideal", .policy = "min-cut(budget=1)", .machine = {}});
  CHECK(result.outcome == Outcome::kOk);
  CHECK(result.totals.recompute == 0_ns);  // recomputing the loss would run the product and the sum again: 2 us
}

TEST_CASE("a budget of min-cut outside 0 to 1 is refused") {
  const auto run = [](const char* policy) {
    const tests::TwoBlocks blocks;
    return simulate(blocks.trace, {.pool = "ideal", .policy = policy, .machine = {}});
  };
  CHECK_THROWS_WITH(run("min-cut(budget=1.5)"), "min-cut: option 'budget' is '1.5'; expected 0 to 1, or auto");
  CHECK_THROWS_WITH(run("min-cut(budget=much)"), "min-cut: option 'budget' is 'much'; expected a number");
}

}  // namespace tidepool::partition_test
