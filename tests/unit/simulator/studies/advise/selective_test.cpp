#include "simulator/run.hpp"
#include "simulator/studies/advise/checkpoint.hpp"
#include "simulator/studies/advise/checkpoint_choice.hpp"
#include "simulator/studies/advise/python_code.hpp"
#include "tests/catch.hpp"
#include "tests/two_blocks.hpp"

namespace tidepool::selective_test {

using tidepool::tests::TwoBlocks;

namespace {

CheckpointedCall first_block(const Trace& trace, const KeptOperators& kept) {
  const StepUses uses{trace};
  for (const ModuleCall& call : module_calls(trace))
    if (call.module == "block.0") return checkpointed_call(trace, uses, call, kept).value();
  throw std::logic_error{"no block"};
}

}  // namespace

TEST_CASE("operators that selective checkpointing keeps do not run again, and their outputs stay") {
  const TwoBlocks step;
  // One of the first block's h (100 B, by mm) and a (60 B, by gelu) is kept. The other is absent in op 8, where 445 B
  // were live.
  for (const auto& [kept, peak] : {std::pair{"mm", 385_B}, std::pair{"gelu", 345_B}}) {
    const CheckpointedCall call = first_block(step.trace, {kept});
    CHECK(call.duration == 10_us);
    CHECK(peak_of(step.trace, checkpointed_steps(step.trace, {&call})).bytes == peak);
    const Trace changed = checkpointed_trace(step.trace, {&call});
    CHECK(changed.ideal_peak() == peak);
    CHECK(baseline_time(changed, Nanos{}) == baseline_time(step.trace, Nanos{}) + 10_us);
  }
}

TEST_CASE("a kept tensor stays until the module's backward ends, if the second run stops before the op that makes it") {
  const TwoBlocks step;
  const CheckpointedCall call = first_block(step.trace, {"mm"});
  REQUIRE(call.kept_ends.size() == 1);
  CHECK(call.kept_ends[0].buffer == step.y[0]);  // if not kept, y ends after op 9; the second run begins before op 10
  const std::vector<ChangedStep> steps = checkpointed_steps(step.trace, {&call});
  std::uint32_t last = 0;
  for (const ChangedStep& each : steps) {
    if (each.kind == EventKind::kRun) last = each.id;
    if (each.kind == EventKind::kFree && each.id == step.y[0].value()) CHECK(last == 12);
  }
}

TEST_CASE("a kept tensor that is freed in forward ends at the same op of the second run, and a workspace is not kept") {
  TraceBuilder build;
  const auto made = [&] { return build.alloc({.size = 10_B, .kind = BufferKind::kActivation}); };
  const auto run = [&](const char* name, Phase phase, BufferId read, BufferId written, BufferId workspace = {}) {
    const Op op{.name = build.text(name), .module = build.text("m"), .phase = phase, .duration = 10_us};
    std::vector<TraceBuilder::Touch> touches{{read, Access::kRead, Evidence::kSchema},
                                             {written, Access::kWrite, Evidence::kSchema}};
    if (workspace.valid()) touches.push_back({workspace, Access::kWrite, Evidence::kInferred});
    build.run(op, touches);
  };
  const BufferId x = build.existing({.size = 10_B, .kind = BufferKind::kInput});
  const BufferId a = made();
  const BufferId workspace = build.alloc({.size = 10_B, .kind = BufferKind::kWorkspace});
  run("mm", Phase::kForward, x, a, workspace);
  build.free(workspace);
  const BufferId b = made();
  run("exp", Phase::kForward, a, b);  // saves b
  build.free(a);
  const BufferId c = made();
  run("sum", Phase::kForward, b, c);
  build.free(c);
  const BufferId g = made();
  run("exp_backward", Phase::kBackward, b, g);
  build.free(b);
  build.free(g);
  const Trace trace = build.finish();
  const StepUses uses{trace};
  const CheckpointedCall call = checkpointed_call(trace, uses, module_calls(trace).at(0), {"mm"}).value();
  REQUIRE(call.kept_ends.size() == 1);
  CHECK(call.kept_ends[0].buffer == a);
  // a (1) is resident from op 0 until exp has run again and has recomputed b (3). The sum saves b too, but does not run
  // again. The workspace of mm (2) ends with mm, and is not made again.
  std::string order;
  for (const ChangedStep& each : checkpointed_steps(trace, {&call}))
    if (each.kind != EventKind::kAlloc)
      order += (each.kind == EventKind::kRun ? "run " : "free ") + std::to_string(each.id) + (each.again ? "' " : " ");
  CHECK(order == "run 0 free 2 run 1 run 2 free 3 free 4 run 1' free 1 run 3 free 3' free 5 ");
}

TEST_CASE(
    "operators to keep are ranked by time per byte, random ones together, and those changed in place are left out") {
  TraceBuilder build;
  const BufferId x = build.existing({.size = 10_B, .kind = BufferKind::kInput});
  std::vector<BufferId> all;
  const auto run = [&](const char* name, Bytes size, Nanos time, bool random) {
    all.push_back(build.alloc({.size = size, .kind = BufferKind::kActivation}));
    Op op{.name = build.text(name), .module = build.text("m"), .phase = Phase::kForward, .random = random};
    op.duration = time;
    build.run(op, {{x, Access::kRead, Evidence::kSchema}, {all.back(), Access::kWrite, Evidence::kSchema}});
  };
  run("aten::mm", 100_B, 300_us, false);        // 3 us per byte
  run("aten::attention", 100_B, 200_us, true);  // with dropout's mask: 250 us for 200 bytes
  run("aten::native_dropout.mask", 100_B, 50_us, true);
  run("aten::gelu", 100_B, 100_us, false);  // 1 us per byte
  run("aten::conv", 100_B, 900_us, false);  // its output is changed in place
  run("aten::tiny", 1_B, 1_us, false);      // less than a hundredth of the time
  run("kernel", 1_B, 900_us, false);        // no operator
  build.run({.name = build.text("aten::relu_"), .module = build.text("m"), .phase = Phase::kForward, .duration = 90_us},
            {{all[4], Access::kReadWrite, Evidence::kSchema}});
  const std::vector<KeptOperators> sets = operators_to_keep(build.finish());
  CHECK(sets == std::vector<KeptOperators>{{"aten::mm"},
                                           {"aten::mm", "aten::attention", "aten::native_dropout"},
                                           {"aten::mm", "aten::attention", "aten::native_dropout", "aten::gelu"}});
}

TEST_CASE("the code of selective checkpoints is a Python file with a policy") {
  CHECK(selective_code({"h.0"}, {"aten::addmm", "aten::mm"}, {}) == R"(import functools

from torch.nn import Module
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

MODULES = [
    "h.0",
]
KEPT = {
    "aten::addmm",
    "aten::mm",
}


def apply(model):
    without_caches(model)
    for name in MODULES:
        module = model.get_submodule(name)
        if getattr(module.forward, "__func__", None) is Module.forward:
            raise TypeError(f"{name}: a {type(module).__name__}, which is never called; expected a module with a forward")
        module.forward = functools.partial(checkpoint, module.forward, use_reentrant=False, context_fn=CONTEXTS)


def without_caches(*models):
    """Models of transformers stop keeping keys and values: a layer that runs again would add its own once more."""
    for part in (part for model in models for part in model.modules()):
        if getattr(getattr(part, "config", None), "use_cache", False):
            part.config.use_cache = False


def policy(context, operator, *args, **kwargs):
    schema = getattr(operator, "_schema", None)
    kept = schema is not None and schema.name in KEPT
    return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE


CONTEXTS = functools.partial(create_selective_checkpoint_contexts, policy)
)");
}

}  // namespace tidepool::selective_test
