#include "simulator/studies/advise/checkpoint.hpp"

#include "simulator/run.hpp"
#include "simulator/studies/advise/checkpoint_choice.hpp"
#include "simulator/studies/advise/python_code.hpp"
#include "tests/catch.hpp"
#include "tests/two_blocks.hpp"
#include "traces/builder.hpp"

namespace tidepool::checkpoint_test {

using tidepool::tests::TwoBlocks;

namespace {

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
  CHECK(calls[0].duration == 20_us);  // the last layer saves only its input, so it does not run again
  CHECK(calls[0].inputs == std::vector{step.x});
  const std::vector<ChangedStep> changed = checkpointed_steps(step.trace, pointers(calls));
  CHECK(step.trace.ideal_peak() == 445_B);
  // In op 8, the first block's 160 B are absent, so 285 B are live. From op 10 on they are resident again: 275 B at
  // most.
  CHECK(peak_of(step.trace, changed).bytes == 285_B);
}

TEST_CASE("the trace of a checkpointed program has the peak of its steps, and the time of all ops that run again") {
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

TEST_CASE(
    "parameters that a module's hook gathers from other ranks are not gathered again with a checkpoint, nor kept") {
  // gather 40 B from a shard | act: y = f(x, weight), 10 B | out: z = g(y), 10 B | backward gathers again, then uses y
  for (const bool collective : {true, false}) {
    TraceBuilder build;
    const auto op = [&](const char* module, Phase phase, OpKind kind = OpKind::kKernel) {
      return Op{
          .name = build.text("op"), .module = build.text(module), .kind = kind, .phase = phase, .duration = 10_us};
    };
    const auto made = [&](Bytes size) { return build.alloc({.size = size, .kind = BufferKind::kActivation}); };
    const auto read = Access::kRead, write = Access::kWrite;
    const auto schema = Evidence::kSchema;
    const BufferId shard =
        build.existing({.size = 5_B, .name = build.text("block.act.weight"), .kind = BufferKind::kParameter});
    const BufferId x = made(10_B);
    build.run(op("", Phase::kForward), {{x, write, schema}});
    const auto gather = [&](Phase phase) {
      const BufferId whole = made(40_B);
      build.run(op("block", phase, collective ? OpKind::kCollective : OpKind::kKernel),
                {{shard, read, schema}, {whole, write, schema}});
      return whole;
    };
    const BufferId whole = gather(Phase::kForward);
    const BufferId y = made(10_B), z = made(10_B);
    build.run(op("block.act", Phase::kForward), {{x, read, schema}, {whole, read, schema}, {y, write, schema}});
    build.run(op("block.out", Phase::kForward), {{y, read, schema}, {z, write, schema}});
    build.free(whole);
    const BufferId loss = made(50_B);
    build.run(op("", Phase::kForward), {{z, read, schema}, {loss, write, schema}});
    const BufferId dz = made(10_B);
    build.run(op("", Phase::kBackward), {{loss, read, schema}, {dz, write, schema}});
    build.free(loss);
    const BufferId again = gather(Phase::kBackward), dx = made(10_B);
    build.run(op("block.out", Phase::kBackward),
              {{dz, read, schema}, {y, read, schema}, {again, read, schema}, {dx, write, schema}});
    for (const BufferId buffer : {y, z, x, dz, again, dx}) build.free(buffer);
    const Trace trace = build.finish();
    const std::vector<CheckpointedCall> calls = calls_of(trace, {"block"});
    REQUIRE(calls.size() == 1);
    const Bytes peak = peak_of(trace, checkpointed_steps(trace, pointers(calls))).bytes;
    CHECK(calls[0].duration == (collective ? 10_us : 20_us));  // act; out saves what it reads
    CHECK(calls[0].inputs == std::vector{x});
    if (collective) CHECK(peak == 95_B);  // in backward: shard, x, z, dz, the gathered weight, y again and dx
    CHECK(checkpointed_trace(trace, pointers(calls)).ideal_peak() == peak);
  }
}

TEST_CASE("a module that saves nothing of its own is not checkpointed") {
  const TwoBlocks step;
  CHECK(calls_of(step.trace, {"block.0.out"}).empty());  // saves only its input, which belongs to another module
  CHECK(calls_of(step.trace, {"block.0.in"}).empty());
  CHECK(calls_of(step.trace, {"block.0"}).size() == 1);
}

TEST_CASE("the search checkpoints the fewest blocks with which the step fits, or those with the least peak") {
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

TEST_CASE("checkpointing refuses a module whose input is overwritten in forward, if the access is known, not guessed") {
  for (const auto& [overwritten, evidence] : {std::pair{false, Evidence::kSchema},
                                              {true, Evidence::kSchema},
                                              {true, Evidence::kInferred},
                                              {true, Evidence::kParameter}}) {
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
              {{overwritten ? x : y, Access::kReadWrite, evidence}, {y, Access::kRead, Evidence::kSchema}});
    build.run(op("mm_backward", "block.out", Phase::kBackward), {{h, Access::kRead, Evidence::kSchema}});
    build.free(h);
    build.free(y);
    build.free(x);
    CHECK(calls_of(build.finish(), {"block"}).empty() == (overwritten && evidence == Evidence::kSchema));
  }
}

TEST_CASE("checkpointing refuses a module that computes with a buffer of the model and changes it") {
  for (const auto& [computes, changes] : {std::pair{true, true}, {true, false}, {false, true}}) {
    TraceBuilder build;
    const auto op = [&](const char* name, Phase phase) {
      return Op{.name = build.text(name), .module = build.text("block"), .phase = phase};
    };
    const BufferId x = build.existing({.size = 10_B, .kind = BufferKind::kInput});
    const BufferId vector =
        build.existing({.size = 10_B, .name = build.text("block.v"), .kind = BufferKind::kParameter});
    const BufferId h = build.alloc({.size = 10_B, .kind = BufferKind::kActivation});
    build.run(op("mv", Phase::kForward),
              {{computes ? vector : x, Access::kRead, Evidence::kSchema}, {h, Access::kWrite, Evidence::kSchema}});
    const BufferId y = build.alloc({.size = 10_B, .kind = BufferKind::kActivation});
    build.run(op("mm", Phase::kForward),
              {{h, Access::kRead, Evidence::kSchema}, {y, Access::kWrite, Evidence::kSchema}});
    if (changes)  // a power iteration, or running statistics
      build.run(op("lerp_", Phase::kForward),
                {{h, Access::kRead, Evidence::kSchema}, {vector, Access::kReadWrite, Evidence::kSchema}});
    build.run(Op{.name = build.text("loss"), .phase = Phase::kForward}, {{y, Access::kRead, Evidence::kSchema}});
    build.run(op("mm_backward", Phase::kBackward), {{h, Access::kRead, Evidence::kSchema}});
    build.free(h);
    build.free(y);
    CHECK(calls_of(build.finish(), {"block"}).empty() == (computes && changes));
  }
}

TEST_CASE("the code of checkpointed modules is a Python file with apply(model)") {
  CHECK(checkpoint_code({"h.0", R"(h."a\b")"}, {}) == R"(import functools

from torch.nn import Module
from torch.utils.checkpoint import checkpoint

MODULES = [
    "h.0",
    "h.\"a\\b\"",
]


def apply(model):
    without_caches(model)
    for name in MODULES:
        module = model.get_submodule(name)
        if getattr(module.forward, "__func__", None) is Module.forward:
            raise TypeError(f"{name}: a {type(module).__name__}, which is never called; expected a module with a forward")
        module.forward = functools.partial(checkpoint, module.forward, use_reentrant=False)


def without_caches(*models):
    """Models of transformers stop keeping keys and values: a layer that runs again would add its own once more."""
    for part in (part for model in models for part in model.modules()):
        if getattr(getattr(part, "config", None), "use_cache", False):
            part.config.use_cache = False
)");
}

namespace {

/// Module a casts its weight and its bias. Backward needs the cast of the weight and not that of the bias. Module b
/// follows a.
struct CastTrace {
  BufferId small, unsaved;  ///< the casts of the weight and of the bias
  Trace trace;
};

/// @param cached  true: autocast holds the cast bias until b has run; false: a frees it after its product
CastTrace cast_trace(bool cached) {
  TraceBuilder build;
  const auto op = [&](const char* name, const char* module, Phase phase) {
    return Op{.name = build.text(name), .module = build.text(module), .phase = phase};
  };
  const auto cast = [&](const char* module, BufferId parameter) {
    const BufferId made = build.alloc({.size = 20_B, .kind = BufferKind::kActivation});
    build.run(op("to", module, Phase::kForward),
              {{parameter, Access::kRead, Evidence::kSchema}, {made, Access::kWrite, Evidence::kSchema}});
    return made;
  };
  const auto parameter = [&](const char* name) {
    return build.existing({.size = 40_B, .name = build.text(name), .kind = BufferKind::kParameter});
  };
  const BufferId weight = parameter("a.weight"), bias = parameter("a.bias");
  const BufferId x = build.existing({.size = 10_B, .kind = BufferKind::kInput});
  const BufferId small = cast("a", weight), unsaved = cast("a", bias);
  const BufferId h = build.alloc({.size = 10_B, .kind = BufferKind::kActivation});
  build.run(op("mm", "a", Phase::kForward), {{x, Access::kRead, Evidence::kSchema},
                                             {small, Access::kRead, Evidence::kSchema},
                                             {unsaved, Access::kRead, Evidence::kSchema},
                                             {h, Access::kWrite, Evidence::kSchema}});
  if (!cached) build.free(unsaved);
  const BufferId y = build.alloc({.size = 10_B, .kind = BufferKind::kActivation});
  build.run(op("relu", "b", Phase::kForward),
            {{h, Access::kRead, Evidence::kSchema}, {y, Access::kWrite, Evidence::kSchema}});
  build.free(h);
  if (cached) build.free(unsaved);
  const BufferId g = build.alloc({.size = 100_B, .kind = BufferKind::kGradient});
  build.run(op("relu_backward", "b", Phase::kBackward),
            {{y, Access::kRead, Evidence::kSchema}, {g, Access::kWrite, Evidence::kSchema}});
  build.free(y);
  build.run(op("mm_backward", "a", Phase::kBackward),
            {{g, Access::kRead, Evidence::kSchema}, {small, Access::kRead, Evidence::kSchema}});
  build.free(small);
  build.free(g);
  return {small, unsaved, build.finish()};
}

}  // namespace

TEST_CASE("autocast holds its casts of parameters until it ends, checkpointed or not") {
  const auto [small, unsaved, trace] = cast_trace(true);
  const std::vector<CheckpointedCall> calls = calls_of(trace, {"a"});
  REQUIRE(calls.size() == 1);
  // The parameters and the input take 90 B. In backward, y (10), the saved cast (20) and g (100) are added: 220 B. If a
  // is checkpointed, its saved cast is freed when autocast ends, and y after its last op; then both casts are
  // recomputed.
  REQUIRE(calls[0].ends.size() == 1);
  CHECK(trace.events()[calls[0].ends[0].position] == Event{EventKind::kFree, unsaved.value()});
  CHECK(trace.ideal_peak() == 90_B + 20_B + 10_B + 100_B);
  CHECK(peak_of(trace, checkpointed_steps(trace, pointers(calls))).bytes == 90_B + 100_B + 20_B + 20_B);
}

TEST_CASE("without autocast's cache, a checkpointed module frees its casts of parameters after their last use") {
  const auto [small, unsaved, trace] = cast_trace(false);
  const std::vector<CheckpointedCall> calls = calls_of(trace, {"a"});
  REQUIRE(calls.size() == 1);
  REQUIRE(calls[0].ends.size() == 1);
  CHECK(calls[0].ends[0].buffer == small);
  CHECK(trace.events()[calls[0].ends[0].position] == Event{EventKind::kRun, 2});  // the product in a, not relu in b
}

}  // namespace tidepool::checkpoint_test
