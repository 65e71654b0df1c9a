#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "simulator/solvers/order/alive.hpp"
#include "simulator/solvers/order/search.hpp"
#include "tests/catch.hpp"
#include "tests/known_uses.hpp"
#include "traces/builder.hpp"
#include "traces/step/dependencies.hpp"

namespace tidepool::order_test {

namespace {

constexpr Evidence kSchema = Evidence::kSchema;

/// Pairs of ops that must keep their order, as in "0<1".
std::vector<std::string> pairs_of(const Dependencies& dependencies) {
  std::vector<std::string> pairs;
  for (std::size_t op = 0; op < dependencies.before.size(); ++op)
    for (const std::uint32_t before : dependencies.before[op])
      pairs.push_back(std::to_string(before) + "<" + std::to_string(op));
  return pairs;
}

std::int64_t count(const Dependencies& dependencies, Reason reason) {
  return dependencies.pairs[static_cast<std::size_t>(reason)];
}

/// Ops on one buffer each, all independent unless `change` makes them dependent.
Trace independent(std::size_t ops, const std::function<void(TraceData&)>& change) {
  TraceBuilder build;
  for (std::size_t i = 0; i < ops; ++i)
    build.run({.name = build.text("op")}, {{build.existing({.size = 10_B}), Access::kReadWrite, kSchema}});
  TraceData data = build.finish().data();
  change(data);
  return Trace{std::move(data)};
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15U + (hash >> 29);
}

/// The outputs of a step in which every op writes a digest of itself and of all content that it reads. Two steps with
/// equal outputs compute the same bytes, whatever their ops compute. Random ops read and write the generator's state.
std::vector<std::uint64_t> digests(const Trace& trace) {
  std::map<std::uint32_t, std::uint64_t> content;  // by buffer
  std::uint64_t existing = 0, generator = 1;
  for (std::uint32_t b = 0; b < trace.buffers().size(); ++b)
    content[b] = trace.buffers()[b].born_before ? ++existing : 0;
  for (const Event& event : trace.events()) {
    if (event.kind != EventKind::kRun) continue;
    const Op& op = trace.op(OpId{event.id});
    std::uint64_t read = mixed(static_cast<std::uint64_t>(op.duration.count()), 7);
    for (const char letter : trace.text(op.name)) read = mixed(read, static_cast<std::uint64_t>(letter));
    if (op.random) read = generator = mixed(generator, read);
    const std::span uses = trace.uses(OpId{event.id});
    for (const Use& use : uses)
      if (use.in.valid()) read = mixed(read, content[trace.version(use.in).buffer.value()]);
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (uses[i].out.valid() && uses[i].access != Access::kView)
        content[trace.version(uses[i].out).buffer.value()] = mixed(read, i);
  }
  std::vector<std::uint64_t> outputs;
  for (const VersionId output : trace.outputs()) outputs.push_back(content[trace.version(output).buffer.value()]);
  return outputs;
}

Bytes lowest_of_all(const Lifetimes& lifetimes, const Dependencies& dependencies) {
  std::vector<std::uint32_t> order(dependencies.before.size()), position(order.size());
  std::iota(order.begin(), order.end(), 0u);
  Bytes lowest = lifetimes.peak(order);
  do {
    for (std::uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    bool kept = true;
    for (std::uint32_t op = 0; op < order.size(); ++op)
      for (const std::uint32_t before : dependencies.before[op]) kept &= position[before] < position[op];
    if (kept) lowest = std::min(lowest, lifetimes.peak(order));
  } while (std::next_permutation(order.begin(), order.end()));
  return lowest;
}

}  // namespace

TEST_CASE("two ops keep their order if one makes or overwrites content that the other one uses") {
  TraceBuilder build;
  const BufferId x = build.existing({.size = 10_B}), y = build.alloc({.size = 10_B}), z = build.alloc({.size = 10_B});
  const Op op{.name = build.text("op")};
  build.run(op, {{x, Access::kRead, kSchema}, {y, Access::kWrite, kSchema}});
  build.run(op, {{x, Access::kRead, kSchema}, {z, Access::kWrite, kSchema}});
  build.run(op, {{x, Access::kReadWrite, kSchema}});                          // after both readers
  build.run(op, {{y, Access::kRead, kSchema}, {z, Access::kRead, kSchema}});  // after their writers
  const Dependencies found = dependencies_of(build.finish());
  CHECK(pairs_of(found) == std::vector<std::string>{"0<2", "1<2", "0<3", "1<3"});
  CHECK(count(found, Reason::kData) == 2);
  CHECK(count(found, Reason::kOverwrite) == 2);
}

TEST_CASE("a read through a view comes after the view and before the next write") {
  TraceBuilder build;
  const BufferId x = build.existing({.size = 10_B});
  const Op op{.name = build.text("op")};
  const VersionId view = build.run(op, {{x, Access::kView, kSchema}}).front();
  build.run(op, {{.buffer = x, .access = Access::kRead, .evidence = kSchema, .through = view}});
  build.run(op, {{x, Access::kReadWrite, kSchema}});
  CHECK(pairs_of(dependencies_of(build.finish())) == std::vector<std::string>{"0<1", "0<2", "1<2"});
}

TEST_CASE("ops that draw random numbers keep their order, and so do collectives") {
  const Trace random = independent(3, [](TraceData& data) { data.ops[0].random = data.ops[2].random = true; });
  CHECK(pairs_of(dependencies_of(random)) == std::vector<std::string>{"0<2"});
  CHECK(count(dependencies_of(random), Reason::kRandom) == 1);
  const Trace collectives =
      independent(3, [](TraceData& data) { data.ops[1].kind = data.ops[2].kind = OpKind::kCollective; });
  CHECK(pairs_of(dependencies_of(collectives)) == std::vector<std::string>{"1<2"});
  CHECK(count(dependencies_of(collectives), Reason::kCollective) == 1);
}

TEST_CASE("no op is moved across a host wait, a source or an op with unknown uses") {
  const std::vector<std::string> walled{"0<1", "1<2", "1<3"};
  for (const OpKind kind : {OpKind::kHostWait, OpKind::kSource}) {
    const Trace trace = independent(4, [&](TraceData& data) { data.ops[1].kind = kind; });
    CHECK(pairs_of(dependencies_of(trace)) == walled);
    CHECK(count(dependencies_of(trace), Reason::kHost) == 3);
  }
  for (const Evidence weak : {Evidence::kParameter, Evidence::kInferred}) {
    const Trace trace = independent(4, [&](TraceData& data) { data.uses[1].evidence = weak; });
    CHECK(pairs_of(dependencies_of(trace)) == walled);
    CHECK(count(dependencies_of(trace), Reason::kUnknown) == 3);
  }
  const Trace known = independent(4, [](TraceData& data) { data.uses[1].evidence = Evidence::kInstrumented; });
  CHECK(pairs_of(dependencies_of(known)).empty());
}

TEST_CASE("a step of several streams is not reordered") {
  TraceBuilder build{{"0", "1"}};
  build.run({.name = build.text("op")}, {});
  CHECK_THROWS_WITH(dependencies_of(build.finish()),
                    "2 streams; expected one: the recording lacks some dependencies between streams");
}

TEST_CASE("an op on lists of tensors becomes one op for each tensor") {
  TraceBuilder build;
  std::vector<BufferId> to, from;
  for (const Bytes size : {100_B, 300_B}) to.push_back(build.existing({.size = size}));
  for (const Bytes size : {100_B, 300_B}) from.push_back(build.existing({.size = size}));
  build.run({.name = build.text("aten::_foreach_add_"), .duration = Nanos{9}}, {{to[0], Access::kReadWrite, kSchema},
                                                                                {to[1], Access::kReadWrite, kSchema},
                                                                                {from[0], Access::kRead, kSchema},
                                                                                {from[1], Access::kRead, kSchema}});
  const Trace whole = build.finish();
  const Trace apart = split_foreach(whole);
  REQUIRE(apart.ops().size() == 2);
  CHECK(apart.ops()[0].duration == Nanos{2});  // the share of 100 of 400 bytes, rounded down
  CHECK(apart.ops()[1].duration == Nanos{7});
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::span uses = apart.uses(OpId{i});
    REQUIRE(uses.size() == 2);
    CHECK(apart.version(uses[0].out).buffer == to[i]);
    CHECK(apart.version(uses[1].in).buffer == from[i]);
  }
  CHECK(apart.ideal_peak() == whole.ideal_peak());

  const auto stays = [&](const std::function<void(TraceData&)>& change) {
    TraceData data = whole.data();
    change(data);
    return split_foreach(Trace{std::move(data)}).ops().size() == 1;
  };
  CHECK_FALSE(stays([](TraceData&) {}));
  CHECK(stays([](TraceData& data) { data.buffers[3].size = 299_B; }));        // entries of two sizes
  CHECK_FALSE(stays([](TraceData& data) { data.buffers[3].size = 301_B; }));  // what is read is part of a larger buffer
  CHECK(stays([](TraceData& data) { data.uses[2].evidence = Evidence::kConst; }));  // not from the schema
  CHECK(stays([](TraceData& data) { data.strings[data.ops[0].name.index()] = "aten::add_"; }));
}

TEST_CASE("if weights are updated as soon as their gradient is complete, it is freed before the next gradient") {
  // Three weights of 10 B and backward's intermediate gradient (10 B); activations of 40 B; gradients of 50 B. In the
  // recorded order, all gradients live until the updates at the end.
  TraceBuilder build;
  const Op forward{.name = build.text("forward")}, backward{.name = build.text("backward")};
  const BufferId passed_on = build.existing({.size = 10_B});
  std::vector<BufferId> weight, activation, gradient;
  for (std::size_t layer = 0; layer < 3; ++layer) weight.push_back(build.existing({.size = 10_B}));
  for (std::size_t layer = 0; layer < 3; ++layer) {
    activation.push_back(build.alloc({.size = 40_B}));
    std::vector<TraceBuilder::Touch> uses{{weight[layer], Access::kRead, kSchema}};
    if (layer > 0) uses.push_back({activation[layer - 1], Access::kRead, kSchema});
    uses.push_back({activation[layer], Access::kWrite, kSchema});
    build.run(forward, uses);
  }
  gradient.resize(3);
  for (const std::size_t layer : {2U, 1U, 0U}) {
    gradient[layer] = build.alloc({.size = 50_B});
    build.run(backward, {{weight[layer], Access::kRead, kSchema},
                         {passed_on, Access::kReadWrite, kSchema},
                         {activation[layer], Access::kRead, kSchema},
                         {gradient[layer], Access::kWrite, kSchema}});
    build.free(activation[layer]);
  }
  for (std::size_t layer = 0; layer < 3; ++layer)
    build.run({.name = build.text("update")},
              {{weight[layer], Access::kReadWrite, kSchema}, {gradient[layer], Access::kRead, kSchema}});
  for (std::size_t layer = 0; layer < 3; ++layer) build.free(gradient[layer]);
  const Trace step = build.finish();

  const Lifetimes lifetimes{step};
  const Dependencies dependencies = dependencies_of(step);
  // The peak is at the last backward op: 40 B throughout, an activation, three gradients.
  CHECK(recorded_order(lifetimes).peak == 230_B);
  // The peak is at the first backward op: three activations and one gradient, freed before the next one is made.
  for (const OpOrder& order : {eager_order(lifetimes, dependencies), lowest_peak_order(lifetimes, dependencies)}) {
    CHECK(order.peak == 210_B);
    CHECK(lifetimes.in_order(order.ops, order.rule).ideal_peak() == 210_B);
  }
  CHECK(eager_order(lifetimes, dependencies).ops == std::vector<std::uint32_t>{0, 1, 2, 3, 8, 4, 7, 5, 6});
  CHECK(lowest_peak_order(lifetimes, dependencies).exact);
  CHECK(peak_bound(lifetimes) == 130_B);  // 40 B throughout, an activation and a gradient
  // The first backward op needs the last activation, and later ops need the first two activations. No order changes
  // this.
  CHECK(alive_bound(lifetimes, dependencies) == 210_B);
}

TEST_CASE("every order keeps dependencies and computes the same") {
  int steps = 0, lower = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::optional<Trace> step = tests::step_of_known_uses(seed, 7);
    if (!step) continue;
    ++steps;
    INFO("seed " << seed);
    const Lifetimes lifetimes{*step};
    const Dependencies dependencies = dependencies_of(*step);
    const OpOrder recorded = recorded_order(lifetimes);
    CHECK(recorded.peak <= step->ideal_peak());
    const OpOrder lowest = lowest_peak_order(lifetimes, dependencies);
    CHECK(lowest.exact);
    CHECK(lowest.peak == lowest_of_all(lifetimes, dependencies));
    CHECK(peak_bound(lifetimes) <= alive_bound(lifetimes, dependencies));
    CHECK(alive_bound(lifetimes, dependencies) <= lowest.peak);
    lower += lowest.peak < recorded.peak;
    for (const OpOrder& order :
         {recorded, least_growth_order(lifetimes, dependencies), eager_order(lifetimes, dependencies),
          latest_order(lifetimes, dependencies), move_ops(recorded, lifetimes, dependencies), lowest}) {
      INFO(order.rule);
      REQUIRE(order.ops.size() == step->ops().size());
      CHECK(order.peak >= lowest.peak);
      const Trace ordered = lifetimes.in_order(order.ops, order.rule);
      CHECK(ordered.ideal_peak() == order.peak);
      CHECK(digests(ordered) == digests(*step));
    }
  }
  CHECK(steps > 200);
  CHECK(lower > 20);
}

}  // namespace tidepool::order_test
