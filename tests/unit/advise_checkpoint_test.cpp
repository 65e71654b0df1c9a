#include "simulator/advise/advise.hpp"
#include "simulator/advise/checkpoint.hpp"
#include "simulator/advise/checkpoint_choice.hpp"
#include "simulator/engine/baseline.hpp"
#include "tests/catch.hpp"
#include "traces/builder.hpp"

using namespace tidepool;

namespace {

/// Two blocks of linear layer, activation, linear layer, and a loss. Each block keeps what its activation reads (h, 100)
/// and makes (a, 60); the second block reads what the first one made (y, 10). x (10) is the input, w (5) a parameter.
/// After forward 365 are alive: w, x, both h and a, the first y, and g (10), the loss's gradient. By backward op:
///   7 makes ga (60): 415, then g and a go: 345 | 8 makes gh (100): 445, then ga and h go: 285
///   9 makes g (10): 295, then gh and y go: 185 | 10, 11, 12 the same in the first block: 245, 275, 125
struct TwoBlocks {
  TraceBuilder build;
  BufferId w, x;
  std::vector<BufferId> h, a, y;
  Trace trace = make();

 private:
  Op op(const char* name, const std::string& module, Phase phase) {
    return {.name = build.text(name), .module = build.text(module), .phase = phase, .duration = 10_us};
  }
  BufferId made(Bytes size) { return build.alloc({.size = size, .kind = BufferKind::kActivation}); }
  void run(const Op& op, const std::vector<BufferId>& read, const std::vector<BufferId>& written) {
    std::vector<TraceBuilder::Touch> touches;
    for (const BufferId id : read) touches.push_back({id, Access::kRead, Evidence::kSchema});
    for (const BufferId id : written) touches.push_back({id, Access::kWrite, Evidence::kSchema});
    build.run(op, touches);
  }

  Trace make() {
    w = build.existing({.size = 5_B, .name = build.text("block.0.in.weight"), .kind = BufferKind::kParameter});
    x = build.existing({.size = 10_B, .kind = BufferKind::kInput});
    BufferId in = x;
    for (const std::string block : {"block.0", "block.1"}) {
      h.push_back(made(100_B));
      run(op("mm", block + ".in", Phase::kForward), {in, w}, {h.back()});
      a.push_back(made(60_B));
      run(op("gelu", block + ".act", Phase::kForward), {h.back()}, {a.back()});
      y.push_back(made(10_B));
      run(op("mm", block + ".out", Phase::kForward), {a.back(), w}, {y.back()});
      in = y.back();
    }
    BufferId g = build.alloc({.size = 10_B, .kind = BufferKind::kGradient});
    run(op("loss", "", Phase::kForward), {y[1]}, {g});
    build.free(y[1]);
    for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
      const std::string block = i == 1 ? "block.1" : "block.0";
      const BufferId ga = build.alloc({.size = 60_B, .kind = BufferKind::kGradient});
      run(op("mm_backward", block + ".out", Phase::kBackward), {g, a[i], w}, {ga});
      build.free(g);
      build.free(a[i]);
      const BufferId gh = build.alloc({.size = 100_B, .kind = BufferKind::kGradient});
      run(op("gelu_backward", block + ".act", Phase::kBackward), {ga, h[i]}, {gh});
      build.free(ga);
      build.free(h[i]);
      g = build.alloc({.size = 10_B, .kind = BufferKind::kGradient});
      run(op("mm_backward", block + ".in", Phase::kBackward), {gh, i == 1 ? y[0] : x, w}, {g});
      build.free(gh);
      if (i == 1) build.free(y[0]);
    }
    run(op("sgd", "", Phase::kOptimizer), {g}, {});
    build.free(g);
    return build.finish();
  }
};

std::vector<CheckpointedCall> calls_of(const Trace& trace, const std::vector<std::string>& modules) {
  std::vector<CheckpointedCall> calls;
  const StepUses uses{trace};
  for (const ModuleCall& call : module_calls(trace))
    if (std::find(modules.begin(), modules.end(), call.module) != modules.end())
      if (auto checkpointed = checkpointed_call(trace, uses, call)) calls.push_back(std::move(*checkpointed));
  return calls;
}

std::vector<const CheckpointedCall*> pointers(const std::vector<CheckpointedCall>& calls) {
  std::vector<const CheckpointedCall*> all;
  for (const CheckpointedCall& call : calls) all.push_back(&call);
  return all;
}

}  // namespace

TEST_CASE("a checkpointed module keeps nothing but its output, and runs again up to the last tensor that it saves") {
  const TwoBlocks step;
  const std::vector<CheckpointedCall> calls = calls_of(step.trace, {"block.0"});
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].duration == 20_us);  // the last layer saves its input only: it is not run again
  CHECK(calls[0].inputs == std::vector{step.x});
  const std::vector<ChangedStep> changed = checkpointed_steps(step.trace, pointers(calls));
  CHECK(step.trace.ideal_peak() == 445_B);
  // In op 8 the first block's 160 are away: 285. From op 10 on they are back: 275 at most.
  CHECK(peak_of(step.trace, changed).bytes == 285_B);
}

TEST_CASE("the steps of a checkpointed program and its trace have the same peak and time") {
  const TwoBlocks step;
  for (const std::vector<std::string>& modules : std::vector<std::vector<std::string>>{
           {"block.0"}, {"block.1"}, {"block.0", "block.1"}, {"block.0.act"}, {"block.0.act", "block.1"}}) {
    const std::vector<CheckpointedCall> calls = calls_of(step.trace, modules);
    const Trace changed = checkpointed_trace(step.trace, pointers(calls));
    CHECK(changed.ideal_peak() == peak_of(step.trace, checkpointed_steps(step.trace, pointers(calls))).bytes);
    Nanos again;
    for (const CheckpointedCall& call : calls) again += call.duration;
    CHECK(baseline_time(changed, Nanos{}) == baseline_time(step.trace, Nanos{}) + again);
  }
}

TEST_CASE("a module that saves nothing of its own is not checkpointed") {
  const TwoBlocks step;
  CHECK(calls_of(step.trace, {"block.0.out"}).empty());  // its input is block.0's, its output is passed on
  CHECK(calls_of(step.trace, {"block.0.in"}).empty());
  CHECK(calls_of(step.trace, {"block.0"}).size() == 1);
}

TEST_CASE("the search checkpoints the fewest blocks that fit, and the nearest if none do") {
  const TwoBlocks step;
  const CheckpointSearch search{step.trace};
  const std::vector<CheckpointChoice> fitting = search.choices(300_B);
  REQUIRE_FALSE(fitting.empty());
  CHECK(fitting.front().peak <= 300_B);
  CHECK(fitting.front().modules == std::vector<std::string>{"block.0"});
  const std::vector<CheckpointChoice> nearest = search.choices(20_B);
  REQUIRE(nearest.size() == 1);
  CHECK(nearest.front().peak > 20_B);
  CHECK(nearest.front().peak <= fitting.front().peak);
}

TEST_CASE("checkpointing refuses a module whose input is overwritten in forward") {
  for (const bool overwritten : {false, true}) {
    TraceBuilder build;
    const auto op = [&](const char* name, const char* module, Phase phase) {
      return Op{.name = build.text(name), .module = build.text(module), .phase = phase};
    };
    const BufferId x = build.alloc({.size = 10_B, .kind = BufferKind::kActivation});
    build.run(op("embed", "first", Phase::kForward), {{x, Access::kWrite, Evidence::kSchema}});
    const BufferId h = build.alloc({.size = 10_B, .kind = BufferKind::kActivation});
    build.run(op("mm", "block.in", Phase::kForward),
              {{x, Access::kRead, Evidence::kSchema}, {h, Access::kWrite, Evidence::kSchema}});
    const BufferId y = build.alloc({.size = 10_B, .kind = BufferKind::kActivation});
    build.run(op("mm", "block.out", Phase::kForward),
              {{h, Access::kRead, Evidence::kSchema}, {y, Access::kWrite, Evidence::kSchema}});
    build.run(op("relu_", "last", Phase::kForward),
              {{overwritten ? x : y, Access::kReadWrite, Evidence::kSchema}, {y, Access::kRead, Evidence::kSchema}});
    build.run(op("mm_backward", "block.out", Phase::kBackward), {{h, Access::kRead, Evidence::kSchema}});
    build.free(h);
    build.free(y);
    build.free(x);
    CHECK(calls_of(build.finish(), {"block"}).empty() == overwritten);
  }
}

TEST_CASE("the code of checkpointed modules is a Python file with apply(model)") {
  CHECK(checkpoint_code({"h.0", R"(h."a\b")"}) == R"(import functools

from torch.nn import Module
from torch.utils.checkpoint import checkpoint

MODULES = [
    "h.0",
    "h.\"a\\b\"",
]


def apply(model):
    for name in MODULES:
        module = model.get_submodule(name)
        if getattr(module.forward, "__func__", None) is Module.forward:
            raise TypeError(f"{name}: a {type(module).__name__}, which is never called; expected a module with a forward")
        module.forward = functools.partial(checkpoint, module.forward, use_reentrant=False)
)");
}
