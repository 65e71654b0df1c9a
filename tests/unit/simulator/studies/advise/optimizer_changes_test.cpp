#include "simulator/studies/advise/optimizer_changes.hpp"

#include <ctime>
#include <vector>

#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "traces/builder.hpp"

namespace tidepool::optimizer_changes_test {

namespace {

constexpr Evidence kSchema = Evidence::kSchema;

/// Two weights of 10 B. Each has a gradient (50 B) from the step before, which `zero_grad` frees first. Backward makes
/// two gradients of 50 B, both from one activation of 5 B. The optimizer scales each gradient into a temporary buffer
/// of 20 B (with `lists`, of 50 B), and adds it to the weight.
struct TwoWeights {
  bool clips = false;       ///< before the updates, each gradient is scaled in place by the norm of all gradients
  bool lists = false;       ///< one op on lists of tensors makes both temporary buffers
  bool reduces = false;     ///< an op outside of the optimizer changes each temporary buffer, as a collective does
  bool short_list = false;  ///< with `lists`: the op also reads a list of one tensor, where the others have two

  Trace trace() const {
    TraceBuilder build;
    const auto op = [&](const char* name, Phase phase) {
      return Op{.name = build.text(name), .phase = phase, .duration = Nanos{10}};
    };
    const Buffer kept{.size = 10_B, .kind = BufferKind::kParameter}, grad{.size = 50_B, .kind = BufferKind::kGradient};
    const BufferId weight[] = {build.existing(kept), build.existing(kept)};
    for (const BufferId old : {build.existing(grad), build.existing(grad)}) build.free(old);
    const BufferId input = build.alloc({.size = 5_B, .kind = BufferKind::kActivation});
    build.run(
        op("forward", Phase::kForward),
        {{weight[0], Access::kRead, kSchema}, {weight[1], Access::kRead, kSchema}, {input, Access::kWrite, kSchema}});
    BufferId gradient[2];
    for (const int i : {1, 0}) {
      gradient[i] = build.alloc(grad);
      build.run(op("backward", Phase::kBackward), {{weight[i], Access::kRead, kSchema},
                                                   {input, Access::kRead, kSchema},
                                                   {gradient[i], Access::kWrite, kSchema}});
    }
    build.free(input);
    if (clips) {
      const BufferId norm = build.alloc({.size = 1_B});
      build.run(op("norm", Phase::kOptimizer), {{gradient[0], Access::kRead, kSchema},
                                                {gradient[1], Access::kRead, kSchema},
                                                {norm, Access::kWrite, kSchema}});
      for (const BufferId each : gradient)
        build.run(op("scale", Phase::kOptimizer),
                  {{each, Access::kReadWrite, kSchema}, {norm, Access::kRead, kSchema}});
      build.free(norm);
    }
    BufferId temporary[2];
    if (lists) {
      for (BufferId& each : temporary) each = build.alloc({.size = 50_B});
      std::vector<TraceBuilder::Touch> touches{{gradient[0], Access::kRead, kSchema},
                                               {gradient[1], Access::kRead, kSchema},
                                               {temporary[0], Access::kWrite, kSchema},
                                               {temporary[1], Access::kWrite, kSchema}};
      if (short_list) touches.push_back({weight[0], Access::kRead, kSchema});
      build.run(op("aten::_foreach_mul", Phase::kOptimizer), touches);
    }
    for (const int i : {0, 1}) {
      if (!lists) {
        temporary[i] = build.alloc({.size = 20_B});
        build.run(op("scaled", Phase::kOptimizer),
                  {{gradient[i], Access::kRead, kSchema}, {temporary[i], Access::kWrite, kSchema}});
      }
      if (reduces) build.run(op("reduce", Phase::kUnknown), {{temporary[i], Access::kReadWrite, kSchema}});
      build.run(op("add_", Phase::kOptimizer),
                {{weight[i], Access::kReadWrite, kSchema}, {temporary[i], Access::kRead, kSchema}});
      build.free(temporary[i]);
    }
    return build.finish();
  }
};

std::vector<std::string> names(const Trace& trace) {
  std::vector<std::string> all;
  for (const Op& op : trace.ops()) all.emplace_back(trace.text(op.name));
  return all;
}

}  // namespace

TEST_CASE("an early update runs directly after the op that completes its gradient, and frees the gradient") {
  const Trace step = TwoWeights{}.trace();
  CHECK(step.ideal_peak() == 140_B);  // weights 20, gradients 100, a temporary
  const auto early = update_early(step);
  REQUIRE(early);
  CHECK(early->updates == 2);
  CHECK(names(early->trace) ==
        std::vector<std::string>{"forward", "backward", "scaled", "add_", "backward", "scaled", "add_"});
  CHECK(early->trace.ideal_peak() == 95_B);  // weights, the input (5), a gradient, a temporary
  Bytes end;                                 // only the weights outlive the step
  for (const Buffer& buffer : early->trace.buffers()) end += buffer.outlives ? buffer.size : 0_B;
  CHECK(end == 20_B);
}

TEST_CASE("early updates divide ops on lists of tensors") {
  TwoWeights step;
  step.lists = true;
  CHECK(step.trace().ideal_peak() == 220_B);  // weights, gradients, both temporaries
  const auto early = update_early(step.trace());
  REQUIRE(early);
  CHECK(early->trace.ideal_peak() == 125_B);  // weights, the input, a gradient, a temporary
}

TEST_CASE("updates of a script that clips its gradients do not run in backward") {
  TwoWeights step;
  step.clips = true;
  CHECK_FALSE(update_early(step.trace()));
  CHECK(no_early_updates(step.trace()) ==
        "the script clips or scales gradients before the optimizer's step, or an update needs several gradients");
}

TEST_CASE("updates that wait for an op outside of the optimizer do not run in backward") {
  TwoWeights step;
  step.reduces = true;
  CHECK_FALSE(update_early(step.trace()));
}

TEST_CASE("early updates that are not possible have a reason, others have none") {
  TwoWeights step;
  CHECK(no_early_updates(step.trace()).empty());
  step.lists = true;
  CHECK(no_early_updates(step.trace()).empty());
  step.short_list = true;
  CHECK_FALSE(update_early(step.trace()));
  CHECK(no_early_updates(step.trace()) ==
        "the lists of aten::_foreach_mul do not have one length; expected one tensor per parameter in each");
}

TEST_CASE("a kernel that updates all parameters is the reason why none of its updates runs in backward") {
  TraceBuilder build;
  std::vector<TraceBuilder::Touch> touches;
  for (int i = 0; i < 2; ++i) {
    const BufferId weight = build.existing({.size = 10_B, .kind = BufferKind::kParameter});
    const BufferId gradient = build.alloc({.size = 10_B, .kind = BufferKind::kGradient});
    build.run({.name = build.text("backward"), .phase = Phase::kBackward},
              {{weight, Access::kRead, kSchema}, {gradient, Access::kWrite, kSchema}});
    touches.push_back({weight, Access::kReadWrite, kSchema});
    touches.push_back({gradient, Access::kReadWrite, kSchema});
  }
  build.run({.name = build.text("aten::_fused_adam_"), .phase = Phase::kOptimizer}, touches);
  CHECK(no_early_updates(build.finish()) ==
        "aten::_fused_adam_ updates all parameters in one kernel; without fused=True it would be tried");
}

TEST_CASE("an update runs in backward only if one backward pass makes its gradient, whatever modules run afterwards") {
  for (const std::string behind : {"", "metric", "second backward"}) {
    TraceBuilder build;
    const auto op = [&](const char* name, Phase phase, const char* module = "m") {
      return Op{.name = build.text(name), .module = build.text(module), .phase = phase, .duration = 10_ns};
    };
    const BufferId weight = build.existing({.size = 10_B, .kind = BufferKind::kParameter});
    const BufferId gradient = build.alloc({.size = 10_B, .kind = BufferKind::kGradient});
    const auto backward = [&] {
      build.run(op("mm_backward", Phase::kBackward), {{gradient, Access::kReadWrite, kSchema}});
    };
    build.run(op("mm", Phase::kForward), {{weight, Access::kRead, kSchema}});
    backward();
    if (behind == "metric") build.run(op("mean", Phase::kForward, "metric"), {});
    if (behind == "second backward") {  // through the same graph
      build.run(op("ones_like", Phase::kOptimizer, ""), {});
      backward();
    }
    build.run(op("add_", Phase::kOptimizer),
              {{weight, Access::kReadWrite, kSchema}, {gradient, Access::kRead, kSchema}});
    INFO(behind);
    CHECK(update_early(build.finish()).has_value() == (behind != "second backward"));
  }
}

TEST_CASE("no update runs in backward if several backward passes add to its gradient") {
  for (const int passes : {1, 2}) {
    TraceBuilder build;
    const auto op = [&](const char* name, Phase phase) {
      return Op{.name = build.text(name), .module = build.text("m"), .phase = phase, .duration = 10_ns};
    };
    const BufferId weight = build.existing({.size = 10_B, .kind = BufferKind::kParameter});
    const BufferId gradient = build.alloc({.size = 10_B, .kind = BufferKind::kGradient});
    for (int pass = 0; pass < passes; ++pass) {
      build.run(op("mm", Phase::kForward), {{weight, Access::kRead, kSchema}});
      build.run(op("mm_backward", Phase::kBackward), {{gradient, Access::kReadWrite, kSchema}});
    }
    build.run(op("add_", Phase::kOptimizer),
              {{weight, Access::kReadWrite, kSchema}, {gradient, Access::kRead, kSchema}});
    const Trace step = build.finish();
    CHECK(update_early(step).has_value() == (passes == 1));
    CHECK(no_early_updates(step) == (passes == 1 ? "" : "the step has several backward passes"));
  }
}

TEST_CASE("the time to move updates grows with the step, not with its square") {
  constexpr int kWeights = 60'000;
  TraceBuilder build;
  const auto op = [&](Phase phase) { return Op{.name = build.text("op"), .phase = phase, .duration = 10_ns}; };
  const Buffer grad{.size = 50_B, .kind = BufferKind::kGradient};
  std::vector<BufferId> weights, gradients;
  for (int i = 0; i < kWeights; ++i) weights.push_back(build.existing({.size = 10_B, .kind = BufferKind::kParameter}));
  for (const BufferId weight : weights) {
    gradients.push_back(build.alloc(grad));
    build.run(op(Phase::kBackward), {{weight, Access::kRead, kSchema}, {gradients.back(), Access::kWrite, kSchema}});
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    build.run(op(Phase::kOptimizer),
              {{gradients[i], Access::kRead, kSchema}, {weights[i], Access::kReadWrite, kSchema}});
    build.free(gradients[i]);
  }
  const Trace trace = build.finish();
  const auto begin = std::clock();
  CHECK(update_early(trace)->updates == kWeights);
  CHECK((std::clock() - begin) / CLOCKS_PER_SEC < (tests::kOptimised ? 4 : 30));
}

}  // namespace tidepool::optimizer_changes_test
