#include "tests/catch.hpp"
#include "traces/builder.hpp"
#include "traces/program_names.hpp"
#include "traces/step/holders.hpp"
#include "traces/step/instant.hpp"

namespace tidepool::explain_test {

namespace {

/// Two layers that keep an activation each, and their backward ops. w (100 B) and its state (200 B) are always live.
/// Bytes live during each op: 0 makes x (40): 340 | 1 makes y (30) from x: 370 | 2 makes g (50) from y: 420 | 3 reads x
/// and updates g: 390, without y | 4 updates w and state with g: 350, without x.
struct TwoLayers {
  BufferId w, state, x, y, g;
  Trace trace = make();

 private:
  Trace make() {
    TraceBuilder build;
    w = build.existing({.size = 100_B, .name = build.text("block.0.fc.weight"), .kind = BufferKind::kParameter});
    state = build.existing(
        {.size = 200_B, .name = build.text("block.0.fc.weight.exp_avg"), .kind = BufferKind::kOptimizerState});
    const Op forward{.name = build.text("aten::mm"), .module = build.text("block.0.fc"), .phase = Phase::kForward};
    x = build.alloc({.size = 40_B, .kind = BufferKind::kActivation});
    build.run(forward, {{w}, {x, Access::kWrite}});
    y = build.alloc({.size = 30_B, .kind = BufferKind::kActivation});
    build.run({.name = build.text("aten::relu"), .module = build.text("block.1.act")}, {{x}, {y, Access::kWrite}});
    g = build.alloc({.size = 50_B, .name = build.text("block.0.fc.weight.grad"), .kind = BufferKind::kGradient});
    build.run({.name = build.text("aten::relu_backward")}, {{y}, {g, Access::kWrite}});
    build.free(y);
    build.run({.name = build.text("aten::mm")}, {{x}, {g, Access::kReadWrite}});
    build.free(x);
    build.run({.name = build.text("adam"), .phase = Phase::kOptimizer},
              {{g}, {w, Access::kReadWrite}, {state, Access::kReadWrite}});
    build.free(g);
    return build.finish();
  }
};

std::vector<std::string> texts(const std::vector<Holder>& holders) {
  std::vector<std::string> texts;
  for (const Holder& holder : holders)
    texts.push_back(holder.module + (holder.module.empty() ? "" : " ") + std::to_string(static_cast<int>(holder.kind)) +
                    " " + std::to_string(holder.bytes.count()));
  return texts;
}

std::vector<LiveBuffer> of_kind(const Trace& trace, const Instant& instant, BufferKind kind) {
  std::vector<LiveBuffer> found;
  for (const LiveBuffer& live : instant.buffers)
    if (trace.buffer(live.buffer).kind == kind) found.push_back(live);
  return found;
}

}  // namespace

TEST_CASE("the instant of the peak is that of the op with the most live bytes") {
  const TwoLayers step;
  const Instant peak = peak_instant(step.trace);
  CHECK(peak.op == OpId{2});
  CHECK(peak.live == 420_B);
  CHECK(peak.live == step.trace.ideal_peak());
  CHECK(peak.in_use == 80_B);  // y and g
  REQUIRE(peak.buffers.size() == 5);
  CHECK(peak.buffers[0].buffer == step.state);
  const LiveBuffer& x = peak.buffers[3];
  CHECK(x.buffer == step.x);
  CHECK((x.since == OpId{0} && x.last_use == OpId{1} && x.next_use == OpId{3} && x.until == OpId{3}));
  CHECK_FALSE(x.in_use);
  CHECK_FALSE(peak.buffers[0].since.valid());
  CHECK_FALSE(peak.buffers[0].until.valid());
}

TEST_CASE("the instant of an op has its outputs, and inputs that no later op reads") {
  const TwoLayers step;
  const std::vector<Bytes> live{340_B, 370_B, 420_B, 390_B, 350_B};
  for (std::size_t i = 0; i < live.size(); ++i) CHECK(instant_of(step.trace, OpId{i}).live == live[i]);
}

TEST_CASE("without the idle buffers of the peak, the peak falls to the next highest instant") {
  const TwoLayers step;
  const Instant peak = peak_instant(step.trace);
  // x is absent only until op 3, which reads it and has 390 B.
  const Lowered activations = lowered_peak(step.trace, peak, of_kind(step.trace, peak, BufferKind::kActivation));
  CHECK(activations.absent == 40_B);
  CHECK(activations.peak == 390_B);
  CHECK(activations.op == OpId{3});
  // The state is absent until op 4, which then has 350 B; op 2 has 220 B.
  const Lowered state = lowered_peak(step.trace, peak, of_kind(step.trace, peak, BufferKind::kOptimizerState));
  CHECK(state.absent == 200_B);
  CHECK(state.peak == 350_B);
  CHECK(state.op == OpId{4});
  // Buffers that the op uses are not removed.
  const Lowered gradient = lowered_peak(step.trace, peak, of_kind(step.trace, peak, BufferKind::kGradient));
  CHECK(gradient.absent == 0_B);
  CHECK(gradient.peak == 420_B);
}

TEST_CASE("a buffer's module is that of its parameter, or of the first op with a module that uses the buffer") {
  const TwoLayers step;
  const ModuleNames names{step.trace};
  CHECK(names.of(step.w).text == "block.0.fc");
  CHECK(names.of(step.state).text == "block.0.fc");
  CHECK(names.of(step.g).text == "block.0.fc");  // from its name; its op has no module
  CHECK(names.of(step.y).text == "block.1.act");
  const Instant peak = peak_instant(step.trace);
  CHECK(texts(holders_of(step.trace, names, peak.buffers, 0)) ==
        std::vector<std::string>{"block.0.fc 3 200", "block.0.fc 1 100", "block.0.fc 2 50", "block.0.fc 4 40",
                                 "block.1.act 4 30"});
  CHECK(texts(holders_of(step.trace, names, peak.buffers, 1)) ==
        std::vector<std::string>{"block 3 200", "block 1 100", "block 4 70", "block 2 50"});
  CHECK(texts(kinds_of(step.trace, peak.buffers)) == std::vector<std::string>{"3 200", "1 100", "4 70", "2 50"});
}

TEST_CASE("without modules, buffers are named by lines of the user's code") {
  TraceBuilder build;
  const StringId line = build.text("model.py:88");
  const BufferId called = build.alloc({.size = 8_B}),
                 asked = build.alloc({.size = 8_B, .line = build.text("model.py:9")});
  build.run({.name = build.text("sgemm"), .line = line}, {{called, Access::kWrite}, {asked, Access::kWrite}});
  const Trace trace = build.finish();
  const ModuleNames names{trace};
  CHECK((names.of(called).by == NamedBy::kLine && names.of(called).text == "model.py:88"));
  CHECK((names.of(asked).by == NamedBy::kLine && names.of(asked).text == "model.py:9"));
  Holder holder;
  CHECK(holder_text(holder) == "(not recorded)");
  holder.module = "model.py:88", holder.named_by = NamedBy::kLine;
  CHECK(holder_text(holder) == "model.py:88");
  holder.module = "sgemm", holder.named_by = NamedBy::kOperator;
  CHECK(holder_text(holder) == "of operator sgemm");
  CHECK(missing_names(trace)[0] ==
        "the trace has no modules, so lines of the code stand for them; `tidepool record --torch` records modules");
}

TEST_CASE("the line of a later op names a buffer rather than the operator that used it first") {
  TraceBuilder build;
  const BufferId copied = build.alloc({.size = 8_B});
  build.run({.name = build.text("memcpy HtoD")}, {{copied, Access::kWrite}});
  build.run({.name = build.text("sgemm"), .line = build.text("model.py:88")}, {{copied}});
  const Trace trace = build.finish();
  const ModuleNames names{trace};
  CHECK(names.of(copied).by == NamedBy::kLine);
  CHECK(names.of(copied).text == "model.py:88");
}

TEST_CASE("a module names a buffer rather than an earlier op's line, and that line rather than a later one") {
  TraceBuilder build;
  const BufferId first = build.alloc({.size = 8_B}), second = build.alloc({.size = 8_B});
  build.run({.name = build.text("sgemm"), .line = build.text("model.py:88")},
            {{first, Access::kWrite}, {second, Access::kWrite}});
  build.run({.name = build.text("memcpy DtoH")}, {{first}, {second}});
  build.run({.name = build.text("relu"), .module = build.text("act"), .line = build.text("model.py:89")}, {{first}});
  build.run({.name = build.text("relu"), .line = build.text("model.py:90")}, {{second}});
  const Trace trace = build.finish();
  const ModuleNames names{trace};
  CHECK(names.of(first).text == "act");
  CHECK(names.of(second).text == "model.py:88");
}

TEST_CASE("ops_they_are_for() and op_it_is_for() name the same op for each buffer, also if no use is recorded") {
  TraceBuilder build;
  const BufferId written = build.alloc({.size = 8_B}), workspace = build.alloc({.size = 8_B});
  build.run({.name = build.text("sgemm")}, {{written, Access::kWrite}});
  const BufferId last = build.alloc({.size = 8_B});
  const Trace trace = build.finish();
  const std::vector<OpId> all = ops_they_are_for(trace);
  CHECK(all == std::vector<OpId>{OpId{0U}, OpId{0U}, OpId{}});
  for (const BufferId id : {written, workspace, last}) CHECK(op_it_is_for(trace, id) == all[id.index()]);
}

TEST_CASE("without modules and lines, operators name buffers, and the report says which data is missing") {
  TraceBuilder build;
  const BufferId first = build.alloc({.size = 8_B});
  build.run({.name = build.text("sgemm")}, {{first, Access::kWrite}});
  const BufferId unused = build.alloc({.size = 8_B});
  build.run({.name = build.text("gemv")}, {{first}});
  const Trace trace = build.finish();
  const ModuleNames names{trace};
  CHECK(names.of(first).by == NamedBy::kOperator);
  CHECK(names.of(first).text == "sgemm");
  CHECK(names.of(unused).text == "gemv");  // gemv is the op for which it was allocated
  CHECK(missing_names(trace) ==
        std::vector<std::string>{
            "the trace has no modules, so operators stand for them; `tidepool record --torch` records modules",
            "the trace has no kinds of buffers; `tidepool record --torch` records them"});
  CHECK(missing_names(TwoLayers{}.trace).empty());
  TraceData data = trace.data();
  data.meta = {{"capture", "torch"}, {"failure", "ValueError: no data"}};
  CHECK(missing_names(Trace{std::move(data)})[0] ==
        "the trace has no modules, so operators stand for them; the job failed before a recorded step called one");
}

}  // namespace tidepool::explain_test
