#include "simulator/studies/advise/offload.hpp"

#include "simulator/run.hpp"
#include "simulator/studies/advise/offload_choice.hpp"
#include "simulator/studies/advise/python_code.hpp"
#include "tests/catch.hpp"
#include "tests/two_blocks.hpp"
#include "traces/step/module_calls.hpp"

namespace tidepool::offload_test {

using tidepool::tests::TwoBlocks;

namespace {

/// Machine whose link takes 1 us per byte to the host and 2 us per byte back.
Machine slow_link() {
  Machine machine;
  machine.d2h = {.rate = BytesPerSecond{1'000'000}, .latency = Nanos{}};
  machine.h2d = {.rate = BytesPerSecond{500'000}, .latency = Nanos{}};
  return machine;
}

std::vector<SavedTensor> saved_in(const TwoBlocks& step, const StepUses& uses, const std::string& module) {
  std::vector<SavedTensor> saved = saved_tensors(step.trace, uses, 1_B);
  std::erase_if(saved, [&](const SavedTensor& each) { return !lies_in(each.module, module); });
  return saved;
}

}  // namespace

TEST_CASE("tensors that a module uses in forward and backward are saved, parameters are not") {
  const TwoBlocks step;
  const StepUses uses{step.trace};
  std::vector<std::pair<BufferId, std::string>> found;
  for (const SavedTensor& each : saved_tensors(step.trace, uses, 1_B))
    found.emplace_back(each.buffer, std::string{each.module});
  CHECK(found == std::vector<std::pair<BufferId, std::string>>{{step.a[1], "block.1.out"},
                                                               {step.h[1], "block.1.act"},
                                                               {step.y[0], "block.1.in"},
                                                               {step.a[0], "block.0.out"},
                                                               {step.h[0], "block.0.act"},
                                                               {step.x, "block.0.in"}});
  CHECK(saved_tensors(step.trace, uses, 100_B).size() == 2);
}

TEST_CASE("an offloaded module's saved tensors leave after their last use in forward and are back for one op each") {
  const TwoBlocks step;
  const StepUses uses{step.trace};
  // h (100 B) and a (60 B) of the first block are swapped out. x belongs to the script, so its copy saves nothing. In
  // op 8, where 445 B were live, both are absent: 285 B. In op 10 only a is back. In op 11, h is
  // back and a has been freed: 275 B, as without offloading.
  const OffloadedStep changed{step.trace, uses, saved_in(step, uses, "block.0")};
  CHECK(step.trace.ideal_peak() == 445_B);
  CHECK(changed.peak() == 285_B);
  CHECK(changed.copied() == 170_B);
  CHECK(changed.copy_time(slow_link()) == 170_us + 340_us);
}

TEST_CASE("no op runs while a tensor of an offloaded module is copied") {
  const TwoBlocks step;
  const StepUses uses{step.trace};
  const Machine machine = slow_link();
  for (const std::string module : {"block.0", "block.1", "block.0.act", "block"}) {
    const OffloadedStep changed{step.trace, uses, saved_in(step, uses, module)};
    const Trace trace = changed.trace(machine);
    CHECK(trace.ideal_peak() == changed.peak());
    CHECK(baseline_time(trace, Nanos{}) == baseline_time(step.trace, Nanos{}) + changed.copy_time(machine));
    CHECK(trace.ops().size() == step.trace.ops().size() + 2 * saved_in(step, uses, module).size());
  }
}

TEST_CASE("a tensor that two modules save leaves the device only if both are offloaded") {
  TraceBuilder build;
  const auto op = [&](const char* name, const char* module, Phase phase) {
    return Op{.name = build.text(name), .module = build.text(module), .phase = phase};
  };
  const auto made = [&] { return build.alloc({.size = 10_B, .kind = BufferKind::kActivation}); };
  const BufferId x = made();
  build.run(op("embed", "first", Phase::kForward), {{x, Access::kWrite, Evidence::kSchema}});
  std::vector<BufferId> out;
  for (const char* module : {"left", "right"}) {
    out.push_back(made());
    build.run(op("mm", module, Phase::kForward),
              {{x, Access::kRead, Evidence::kSchema}, {out.back(), Access::kWrite, Evidence::kSchema}});
  }
  for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
    build.run(op("mm_backward", i == 1 ? "right" : "left", Phase::kBackward),
              {{x, Access::kRead, Evidence::kSchema}, {out[i], Access::kRead, Evidence::kInferred}});
    build.free(out[i]);
  }
  build.free(x);
  const Trace trace = build.finish();
  const StepUses uses{trace};
  const auto peak_with = [&](const std::vector<std::string>& modules) {
    std::vector<SavedTensor> saved = saved_tensors(trace, uses, 1_B);
    std::erase_if(saved, [&](const SavedTensor& each) {
      return each.buffer != x || std::find(modules.begin(), modules.end(), each.module) == modules.end();
    });
    return OffloadedStep{trace, uses, saved}.peak();
  };
  CHECK(trace.ideal_peak() == 30_B);    // x and both outputs
  CHECK(peak_with({"right"}) == 40_B);  // x stays for the left module; in the right one's backward it has two copies
  CHECK(peak_with({"left"}) == 30_B);
  CHECK(peak_with({"left", "right"}) == 30_B);  // x leaves after the right module's forward and is back for each
}

TEST_CASE("the search offloads the first modules, as few as let the step fit, or those with the least peak") {
  const TwoBlocks step;
  const Machine machine = slow_link();
  const OffloadSearch search{step.trace, machine, 60_B};
  const std::vector<OffloadChoice> fitting = search.choices(300_B);
  REQUIRE_FALSE(fitting.empty());
  CHECK(fitting.front().peak == 285_B);
  CHECK(fitting.front().copies == 160_us + 320_us);  // h and a; x and y are below the least size
  const std::vector<OffloadChoice> nearest = search.choices(20_B);
  REQUIRE(nearest.size() == 1);
  CHECK(nearest.front().peak > 20_B);
  CHECK(nearest.front().peak <= fitting.front().peak);
}

TEST_CASE("the code of offloaded modules is a Python file with apply(model)") {
  CHECK(offload_code({"h.0"}, 1024_B, {}) == R"(import functools

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import Module

MODULES = [
    "h.0",
]
LEAST = 1024  # bytes: smaller tensors stay on the device


def apply(model):
    for name in MODULES:
        module = model.get_submodule(name)
        if getattr(module.forward, "__func__", None) is Module.forward:
            raise TypeError(f"{name}: a {type(module).__name__}, which is never called; expected a module with a forward")
        module.forward = functools.partial(offloaded, module, module.forward)


def offloaded(module, forward, *args, **kwargs):
    stay = {part.untyped_storage().data_ptr() for tensor in (*module.parameters(), *module.buffers()) for part in parts(tensor)}

    def pack(tensor):
        if not isinstance(tensor, torch.Tensor):
            return None, None, tensor
        if wraps(tensor):
            names, context = tensor.__tensor_flatten__()
            inner = {name: pack(getattr(tensor, name)) for name in names}
            return inner, (context, tensor.size(), tensor.stride()), type(tensor)
        storage = tensor.untyped_storage()
        if tensor.is_cpu or storage.nbytes() < LEAST or storage.data_ptr() in stay:
            return None, tensor.size(), tensor
        once = tensor[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride())]  # not expanded
        host = torch.empty_like(once, device="cpu", pin_memory=True)
        return tensor.device, tensor.size(), host.copy_(once, non_blocking=True)

    def unpack(packed):
        device, size, tensor = packed
        if isinstance(device, dict):
            return tensor.__tensor_unflatten__({name: unpack(inner) for name, inner in device.items()}, *size)
        return tensor if device is None else tensor.to(device, non_blocking=True).expand(size)

    with saved_tensors_hooks(pack, unpack):
        return forward(*args, **kwargs)


def wraps(tensor):
    """Whether a tensor is made of others, as a DTensor is; not all of its parts are tensors."""
    return hasattr(tensor, "__tensor_flatten__")


def parts(tensor):
    if wraps(tensor):
        return [part for name in tensor.__tensor_flatten__()[0] for part in parts(getattr(tensor, name))]
    return [tensor] if isinstance(tensor, torch.Tensor) else []
)");
}

}  // namespace tidepool::offload_test
