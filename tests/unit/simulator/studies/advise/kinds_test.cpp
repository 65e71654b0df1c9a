// Advice on budgets, on settings of the allocator and on blocks, in closed form.
#include "simulator/studies/advise/advise.hpp"
#include "simulator/studies/advise/step_uses.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/two_blocks.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::kinds_test {

namespace {

Advice advice_for(const Trace& trace, Bytes capacity, const char* kind) {
  RunSpec spec;
  spec.capacity = capacity;
  return advise({trace}, {"step.tide", "a100-pcie4"}, spec, {{kind}, {}});
}

}  // namespace

TEST_CASE("the advised budget is the largest with which the minimum cut fits") {
  // At most 445 B are live. The two tensors a (60 B each) are made by cheap ops. If both are dropped, at most 385 B are
  // live. Of the 340 B of kept tensors besides the inputs, 220 B are left, which is within every budget down to 0.65.
  // Two gelu of 10 us run again, beside 14 ops of 10 us.
  const tests::TwoBlocks blocks{.names = "aten::"};
  const Advice advice = advice_for(blocks.trace, 400_B, "budget");
  CHECK(advice.base_peak == 445_B);
  REQUIRE(advice.changes.size() == 1);
  const Change& change = advice.changes[0];
  CHECK(change.kind == "budget");
  CHECK(change.fits);
  CHECK(change.peak_is_least);
  CHECK(change.peak == 385_B);
  CHECK(change.overhead_ratio == Approx(160.0 / 140));
  CHECK(change.code ==
        "import torch._functorch.config\n\n\ndef apply(model):\n"
        "    torch._functorch.config.activation_memory_budget = 0.95\n    model.compile()\n");
}

TEST_CASE("of the graphs of a compiled job, only plans that recompute are tried") {
  TraceData data = load_trace(paths::source_folder() + "/traces/samples/unet.tide").data();
  data.meta["ops"] = "graphs";
  const Trace trace{std::move(data)};
  RunSpec spec;
  spec.capacity = trace.ideal_peak() / 10 * 8;
  const Advice advice = advise({trace}, {"step.tide", "a100-pcie4"}, spec, {{"plan"}, {"tide", "tide-remat"}});
  REQUIRE(advice.changes.size() == 1);
  CHECK_THAT(advice.changes[0].code, ContainsSubstring("--policy 'tide-remat'"));
  CHECK_THAT(advice.changes[0].code, ContainsSubstring("custom_partitioner_fn = partitioner(\"step.json\")"));
  REQUIRE(advice.notes.size() == 1);
  CHECK_THAT(advice.notes[0], ContainsSubstring("only those that recompute were tried"));
}

TEST_CASE("a batch that fits with no number of parts is divided into no more parts than lower the peak") {
  // 108000 B stay whole; 16000 B are divided. 64 parts need 108250 B. 16 parts need 750 B more, which is less than 1 %
  // of the peak; 8 parts need 1750 B more.
  TraceBuilder build;
  const auto op = [&](Phase phase) {
    return Op{.name = build.text("mm"), .module = build.text("m"), .phase = phase, .duration = 10_us};
  };
  const BufferId weight =
      build.existing({.size = 100'000_B, .name = build.text("m.weight"), .kind = BufferKind::kParameter});
  const BufferId batch = build.existing({.size = 8000_B, .kind = BufferKind::kInput});
  const BufferId made = build.alloc({.size = 16'000_B, .kind = BufferKind::kActivation});
  build.run(op(Phase::kForward), {{batch, Access::kRead, Evidence::kSchema},
                                  {weight, Access::kRead, Evidence::kSchema},
                                  {made, Access::kWrite, Evidence::kSchema}});
  build.run(op(Phase::kBackward), {{made, Access::kRead, Evidence::kSchema}});
  build.free(made);
  const Advice advice = advice_for(build.finish(), 50'000_B, "batch");
  CHECK(advice.base_peak == 124'000_B);
  REQUIRE(advice.changes.size() == 1);
  CHECK(advice.changes[0].parts == 16);
  CHECK(advice.changes[0].peak == 109'000_B);
  CHECK_THAT(advice.changes[0].code, ContainsSubstring("A loss that compares samples of the batch"));
}

TEST_CASE("a fused optimizer makes no temporary tensors") {
  // Two weights of 10 B with gradients and two states of 10 B each: 80 B, and two temporaries of 10 B.
  for (const bool adam : {true, false}) {
    TraceBuilder build;
    const auto op = [&](const char* name, Phase phase) {
      return Op{.name = build.text(name), .module = build.text("m"), .phase = phase, .duration = 10_us};
    };
    const auto made = [&](BufferKind kind, auto&& make) { return std::array{make(kind), make(kind)}; };
    const auto old = [&](BufferKind kind) { return build.existing({.size = 10_B, .kind = kind}); };
    const auto fresh = [&](BufferKind kind) { return build.alloc({.size = 10_B, .kind = kind}); };
    const auto weights = made(BufferKind::kParameter, old), means = made(BufferKind::kOptimizerState, old),
               squares = made(BufferKind::kOptimizerState, old), gradients = made(BufferKind::kGradient, fresh);
    const auto run = [&](const Op& what, std::vector<std::pair<std::array<BufferId, 2>, Access>> lists) {
      std::vector<TraceBuilder::Touch> touches;
      for (const auto& [list, access] : lists)
        for (const BufferId entry : list) touches.push_back({entry, access, Evidence::kSchema});
      build.run(what, touches);
    };
    using enum Access;
    run(op("aten::mm", Phase::kForward), {{weights, kRead}});
    run(op("aten::mm", Phase::kBackward), {{weights, kRead}, {gradients, kWrite}});
    run(op(adam ? "aten::_foreach_lerp_" : "aten::_foreach_add_", Phase::kOptimizer),
        {{means, kReadWrite}, {gradients, kRead}});
    const auto roots = made(BufferKind::kWorkspace, fresh);
    run(op("aten::_foreach_sqrt", Phase::kOptimizer), {{squares, kRead}, {roots, kWrite}});
    run(op("aten::_foreach_add_", Phase::kOptimizer), {{roots, kReadWrite}});
    run(op("aten::_foreach_addcdiv_", Phase::kOptimizer), {{weights, kReadWrite}, {means, kRead}, {roots, kRead}});
    for (const BufferId root : roots) build.free(root);
    const Advice advice = advice_for(build.finish(), 90_B, "optimizer");
    CHECK(advice.base_peak == 100_B);
    CHECK(advice.changes.size() == (adam ? 1 : 0));
    if (advice.changes.empty()) continue;
    CHECK(advice.changes[0].peak == 80_B);
    CHECK(advice.changes[0].fits);
    CHECK(advice.changes[0].overhead_ratio == Approx(5.0 / 6));  // the op on temporaries alone is gone
    CHECK_THAT(advice.changes[0].code, ContainsSubstring("group.update(fused=True, foreach=False)"));
  }
}

TEST_CASE("a kind that takes longer than its share of the time is left out, and the next one has its turn") {
  RunSpec spec;
  spec.capacity = 400_B;
  const tests::TwoBlocks blocks{.names = "aten::"};
  std::vector<std::string> done;
  const auto with = [&](std::chrono::milliseconds limit) {
    done.clear();
    return advise({blocks.trace}, {"step.tide", "a100-pcie4"}, spec,
                  {.kinds = {"budget", "checkpoint"},
                   .planners = {},
                   .limit = limit,
                   .done = [&](const std::string& kind, const auto&) { done.push_back(kind); }});
  };
  const Advice whole = with(std::chrono::minutes{2});
  CHECK(done == std::vector<std::string>{"checkpoint", "budget"});
  CHECK(whole.notes.empty());
  const Advice unlimited = advise({blocks.trace}, {"step.tide", "a100-pcie4"}, spec, {{"budget", "checkpoint"}, {}});
  REQUIRE(whole.changes.size() == unlimited.changes.size());
  for (std::size_t i = 0; i < whole.changes.size(); ++i) {
    CHECK(whole.changes[i].code == unlimited.changes[i].code);
    CHECK(whole.changes[i].peak == unlimited.changes[i].peak);
    CHECK(whole.changes[i].bound == unlimited.changes[i].bound);
  }
  const Advice none = with(std::chrono::milliseconds{0});
  CHECK(done.empty());
  CHECK(none.notes ==
        std::vector<std::string>{"checkpoint was not done within its share of the time, 0.0 s (--time-limit)",
                                 "budget was not done within its share of the time, 0.0 s (--time-limit)"});
}

TEST_CASE("no budget is advised if the ops are kernels, not operators") {
  const Advice advice = advice_for(tests::TwoBlocks{}.trace, 400_B, "budget");
  CHECK(advice.changes.empty());
  CHECK(advice.notes.size() == 1);
}

TEST_CASE("advice lists a change whose peak is only a lower limit after one that fits for certain") {
  RunSpec spec;
  spec.capacity = 400_B;
  const tests::TwoBlocks blocks{.names = "aten::"};
  const Advice advice = advise({blocks.trace}, {"step.tide", "a100-pcie4"}, spec, {{"budget", "checkpoint"}, {}});
  REQUIRE(advice.changes.size() > 1);
  CHECK(advice.changes.front().kind == "checkpoint");
  CHECK(advice.changes.front().fits);
  CHECK(advice.changes.front().overhead_ratio >= advice.changes.back().overhead_ratio);
  CHECK(advice.changes.back().kind == "budget");
}

TEST_CASE("of the allocator's settings with which the tensors fit, the one that reserves least is advised") {
  // A segment of 6000 MiB holds b (3000 MiB) and cannot be released when c (9000 MiB) is requested: 15000 MiB are
  // reserved, 12000 MiB live. A segment larger than max_split_size is not divided: it is released, and b gets its own.
  TraceBuilder build;
  constexpr Bytes kMiB{1 << 20};
  const auto op = [&](Phase phase) {
    return Op{.name = build.text("aten::mm"), .module = build.text("m"), .phase = phase};
  };
  const BufferId a = build.alloc({.size = kMiB * 6000});
  build.run(op(Phase::kForward), {{a, Access::kWrite}});
  build.free(a);
  const BufferId b = build.alloc({.size = kMiB * 3000});
  const BufferId c = build.alloc({.size = kMiB * 9000});
  build.run(op(Phase::kBackward), {{b, Access::kWrite}, {c, Access::kWrite}});
  build.free(b);
  build.free(c);
  const Trace trace = build.finish();
  const Advice advice = advice_for(trace, kMiB * 13000, "allocator");
  CHECK(advice.base_peak == kMiB * 12000);
  CHECK(advice.reserved == kMiB * 15000);
  REQUIRE(advice.changes.size() == 1);
  CHECK(advice.changes[0].fits);
  CHECK(advice.changes[0].reserved == kMiB * 12000);
  CHECK(advice.changes[0].code == "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512\n");
  // With a limit of 15000 MiB there is nothing to change; with one of 11999 MiB the tensors do not fit.
  CHECK_FALSE(advice_for(trace, kMiB * 15000, "allocator").reserved);
  CHECK(advice_for(trace, kMiB * 11999, "allocator").changes.empty());
}

TEST_CASE("the peak in blocks of the allocator counts whole blocks that it does not split") {
  // 100 B take a block of 512 B. 19.5 MiB take a whole segment of 20 MiB, since less than 1 MiB would be left. 1.5 MiB
  // take only their own bytes of a segment of 20 MiB.
  const auto peak = [](std::initializer_list<Bytes> sizes) {
    TraceBuilder build;
    std::vector<BufferId> buffers;
    for (const Bytes size : sizes) buffers.push_back(build.alloc({.size = size}));
    for (const BufferId buffer : buffers) build.free(buffer);
    return allocated_peak(build.finish());
  };
  CHECK(peak({100_B}) == 512_B);
  CHECK(peak({19968_KiB}) == 20_MiB);
  CHECK(peak({1536_KiB}) == 1536_KiB);
  CHECK(peak({100_B, 19968_KiB, 1536_KiB}) == 512_B + 20_MiB + 1536_KiB);
}

TEST_CASE("a step without a backward pass is refused") {
  TraceBuilder build;
  const BufferId x = build.alloc({.size = 100_B});
  build.run({.name = build.text("aten::mm"), .module = build.text("m"), .phase = Phase::kForward},
            {{x, Access::kWrite}});
  CHECK_THROWS_WITH(advice_for(build.finish(), 50_B, "checkpoint"),
                    "no backward op is recorded; expected a whole training step, forward, backward and optimizer");
}

}  // namespace tidepool::kinds_test
