// Steps whose batch is cut into micro-batches, in closed form.
#include "simulator/studies/advise/micro_batches.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::advise_micro_batches_test {

using Catch::Matchers::StartsWith;
namespace {

/// One linear module with a cast of its parameter, in `passes` forward and backward passes, and one optimizer step.
struct Linear {
  TraceBuilder build{};

  BufferId alloc(std::int64_t size, BufferKind kind, const char* name = "") {
    return build.alloc({.size = Bytes{size}, .name = build.text(name), .kind = kind});
  }
  void run(const char* name, Phase phase, const std::vector<BufferId>& reads, const std::vector<BufferId>& writes,
           Access access = Access::kWrite) {
    const Op op{.name = build.text(name), .module = build.text("m"), .phase = phase, .duration = 12_us};
    std::vector<TraceBuilder::Touch> touches;
    for (const BufferId read : reads) touches.push_back({read, Access::kRead, Evidence::kSchema});
    for (const BufferId written : writes) touches.push_back({written, access, Evidence::kSchema});
    build.run(op, touches);
  }

  Trace trace(int passes) {
    using enum BufferKind;
    const BufferId weight = build.existing({.size = 4000_B, .name = build.text("m.weight"), .kind = kParameter});
    const BufferId batch = build.existing({.size = 8000_B, .kind = kInput});
    BufferId gradient, loss;
    for (int i = 0; i < passes; ++i) {
      const BufferId cast = alloc(2000, kActivation);
      run("to", Phase::kForward, {weight}, {cast});
      const BufferId made = alloc(6000, kActivation);
      run("mm", Phase::kForward, {batch, cast}, {made});
      loss = alloc(4, kActivation);
      run("sum", Phase::kForward, {made}, {loss});
      const BufferId upper = alloc(6000, kGradient);
      run("expand", Phase::kBackward, {loss}, {upper});
      const BufferId sums = alloc(1000, kWorkspace);
      run("sum", Phase::kBackward, {upper}, {sums});
      build.free(sums);
      const BufferId half = alloc(2000, kGradient), fixed = alloc(800, kWorkspace);
      run("mm", Phase::kBackward, {upper, batch}, {half});
      for (const BufferId end : {fixed, upper}) build.free(end);
      gradient = alloc(4000, kGradient, "m.weight.grad");
      run("to", Phase::kBackward, {half}, {gradient});
      for (const BufferId end : {half, made, cast}) build.free(end);
    }
    run("sgd", Phase::kOptimizer, {gradient}, {weight}, Access::kReadWrite);
    build.free(gradient);
    build.free(loss);
    return build.finish();
  }
};

std::string program_of(const Trace& trace) {
  std::string text;
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kRun) text += trace.text(trace.op(OpId{event.id}).name);
    if (event.kind == EventKind::kAlloc) text += "+" + std::to_string(trace.buffer(BufferId{event.id}).size.count());
    if (event.kind == EventKind::kFree) text += "-" + std::to_string(trace.buffer(BufferId{event.id}).size.count());
    text += " ";
  }
  return text;
}

TEST_CASE("micro-batches divide buffers that depend on the batch, and gradients of parameters add up") {
  const Trace step = Linear{}.trace(1);
  CHECK(step.ideal_peak() == Bytes{4000 + 8000 + 2000 + 6000 + 4 + 6000 + 2000 + 800});
  const Trace changed = with_micro_batches(step, 2).value();
  const std::string first = "+2000 to +3000 mm +4 sum ", second = "+2000 to +3000 mm +4 sum -4 ",
                    backward = "+3000 expand +500 sum -500 +2000 +800 mm -800 -3000 +4000 to ",
                    end = "-2000 -3000 -2000 ";
  CHECK(program_of(changed) ==
        first + backward + end + second + backward + "aten::add_ -4000 " + end + "sgd -4000 -4 ");
  // The weight, the batch, the sum of gradients, and the second part's cast, activation, loss and both gradients.
  CHECK(changed.ideal_peak() == Bytes{4000 + 8000 + 4000 + 2000 + 3000 + 4 + 2000 + 4000});
  // Each cast of the weight takes as long as before, and the other six ops of a pass half as long. An addition moves
  // 12,000 B, as the optimizer does in 12 us.
  Nanos total;
  for (const Op& op : changed.ops()) total += op.duration;
  CHECK(total == Nanos{2 * (12'000 + 6 * 6'000) + 12'000 + 12'000});
  CHECK(with_micro_batches(step, 1).value().ideal_peak() == step.ideal_peak());
}

TEST_CASE("a batch that the passes free stays until all parts have run, since the parts are views of it") {
  using enum BufferKind;
  Linear step;
  const BufferId weight =
      step.build.existing({.size = 1000_B, .name = step.build.text("m.weight"), .kind = kParameter});
  const BufferId unused = step.build.existing({.size = 300_B, .kind = kActivation});
  const BufferId batch = step.alloc(64'000, kInput);
  step.build.run({.name = step.build.text("load"), .kind = OpKind::kSource}, {{batch, Access::kWrite}});
  const BufferId made = step.alloc(1000, kActivation);
  step.run("mm", Phase::kForward, {batch, weight}, {made});
  for (const BufferId end : {batch, unused}) step.build.free(end);
  const BufferId large = step.alloc(100'000, kActivation);
  step.run("relu", Phase::kForward, {made}, {large});
  const BufferId gradient = step.alloc(1000, kGradient, "m.weight.grad");
  step.run("mm", Phase::kBackward, {large}, {gradient});
  for (const BufferId end : {large, made}) step.build.free(end);
  step.run("sgd", Phase::kOptimizer, {gradient}, {weight}, Access::kReadWrite);
  step.build.free(gradient);
  const Trace changed = with_micro_batches(step.build.finish(), 2).value();
  CHECK(program_of(changed) ==
        "+64000 load +500 mm -300 +50000 relu +1000 mm -50000 -500 "
        "+500 mm +50000 relu +1000 mm aten::add_ -1000 -50000 -500 -64000 sgd -1000 ");
  // The weight, the batch, the sum of gradients, and the second part's activations and gradient.
  CHECK(changed.ideal_peak() == Bytes{1000 + 64'000 + 1000 + 500 + 50'000 + 1000});
}

TEST_CASE("workspaces of at most 512 bytes keep their size") {
  using enum BufferKind;
  Linear step;
  const BufferId weight =
      step.build.existing({.size = 1000_B, .name = step.build.text("m.weight"), .kind = kParameter});
  const BufferId batch = step.build.existing({.size = 8000_B, .kind = kInput});
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    const BufferId small = step.alloc(512, kWorkspace), larger = step.alloc(514, kWorkspace);
    step.run("sum", phase, {batch}, {weight}, Access::kReadWrite);
    for (const BufferId end : {small, larger}) step.build.free(end);
  }
  const std::string pass = "+512 +257 sum -512 -257 ";
  CHECK(program_of(with_micro_batches(step.build.finish(), 2).value()) == pass + pass + pass + pass);
}

TEST_CASE("a step that has micro-batches already, or no backward pass, is not cut") {
  CHECK_FALSE(with_micro_batches(Linear{}.trace(2), 2));
  Linear forward;
  const BufferId weight = forward.build.existing({.size = 4000_B, .kind = BufferKind::kParameter});
  const BufferId made = forward.alloc(6000, BufferKind::kActivation);
  forward.run("mm", Phase::kForward, {weight}, {made});
  forward.build.free(made);
  CHECK_FALSE(with_micro_batches(forward.build.finish(), 2));
}

TEST_CASE("a graph, whose edges pick nodes, has no evident batch, and picked rows of a table leave one") {
  using enum BufferKind;
  for (const bool graph : {false, true}) {
    Linear step;
    const BufferId table =
        step.build.existing({.size = 9000_B, .name = step.build.text("m.weight"), .kind = kParameter});
    const BufferId nodes = step.build.existing({.size = 8000_B, .kind = kInput});
    const BufferId edges = step.build.existing({.size = 1600_B, .kind = kInput});
    const BufferId made = step.alloc(6000, kActivation), loss = step.alloc(4, kActivation);
    step.run("aten::index_select", Phase::kForward, {graph ? nodes : table, edges}, {made});
    step.run("aten::mm", Phase::kForward, {made, nodes, table}, {loss});
    step.run("aten::mm", Phase::kBackward, {made, loss}, {loss}, Access::kReadWrite);
    for (const BufferId end : {made, loss}) step.build.free(end);
    const Trace trace = step.build.finish();
    CHECK(with_micro_batches(trace, 2).has_value() == !graph);
    CHECK_THAT(no_micro_batches(trace),
               StartsWith(graph ? "op 0 (aten::index_select in m) picks rows of one input" : ""));
    CHECK(no_micro_batches(trace).empty() == !graph);
  }
}

TEST_CASE("a step that updates parameters before its last backward op, as in a GAN, is not cut") {
  using enum BufferKind;
  for (const bool updates : {false, true}) {
    Linear step;
    const BufferId weight = step.build.existing({.size = 1000_B, .kind = kParameter});
    const BufferId batch = step.build.existing({.size = 8000_B, .kind = kInput});
    const BufferId made = step.alloc(6000, kActivation), metric = step.alloc(4, kActivation);
    step.run("mm", Phase::kForward, {batch, weight}, {made});
    const BufferId gradient = step.alloc(1000, kGradient);
    step.run("mm", Phase::kBackward, {made}, {gradient});
    step.run("sgd", Phase::kOptimizer, {gradient}, {updates ? weight : metric}, Access::kReadWrite);
    step.run("mm", Phase::kBackward, {made}, {gradient}, Access::kReadWrite);
    step.run("sgd", Phase::kOptimizer, {gradient}, {weight}, Access::kReadWrite);
    for (const BufferId end : {made, metric, gradient}) step.build.free(end);
    CHECK(with_micro_batches(step.build.finish(), 2).has_value() == !updates);
  }
}

}  // namespace
}  // namespace tidepool::advise_micro_batches_test
