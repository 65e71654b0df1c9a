#include "simulator/studies/advise/python_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "traces/base/text.hpp"
#include "traces/step/module_calls.hpp"

namespace tidepool {

namespace {

/// The names between brackets, one on each line.
std::string list_of(const std::vector<std::string>& names, const std::string& open, const std::string& close) {
  std::string list = open + "\n";
  for (const std::string& name : names) list += "    " + json_text(nlohmann::json(name)) + ",\n";
  return list + close + "\n";
}

std::string list_of_modules(const std::vector<std::string>& modules, const std::vector<std::string>& models) {
  return list_of(with_models(modules, models), "MODULES = [", "]");
}

enum class Second { kNone, kRun };  ///< whether modules run a second time, in backward

/// The function apply(model), which replaces the forward of each module. If the job has several models, it is
/// apply(*models).
std::string apply_with(const std::string& forward, Second second, const std::vector<std::string>& models) {
  const bool one = models.empty(), again = second == Second::kRun;
  const std::string given = one ? "model" : "*models";
  return fmt::format(R"(

def apply({}):
{}    for name in MODULES:
        module = {}
        if getattr(module.forward, "__func__", None) is Module.forward:
            raise TypeError(f"{{name}}: a {{type(module).__name__}}, which is never called; expected a module with a forward")
        module.forward = {}
)",
                     given, again ? fmt::format("    without_caches({})\n", given) : "",
                     one ? "model.get_submodule(name)" : "module_of(models, name)", forward) +
         (one ? "" : R"(

def module_of(models, name):
    """The module of a name that begins with the class of its model; Class2 is the second model of the class."""
    named = {}
    for model in models:
        kind = type(model).__name__
        number = 1 + sum(type(other).__name__ == kind for other in named.values())
        named[kind if number == 1 else f"{kind}{number}"] = model
    owner, _, path = name.partition(".")
    if owner not in named:
        raise ValueError(f"{name}: apply() was given {', '.join(named) or 'no model'}; expected {owner} too")
    return named[owner].get_submodule(path)
)") + (!again ? "" : R"(

def without_caches(*models):
    """Models of transformers stop keeping keys and values: a layer that runs again would add its own once more."""
    for part in (part for model in models for part in model.modules()):
        if getattr(getattr(part, "config", None), "use_cache", False):
            part.config.use_cache = False
)");
}

}  // namespace

std::vector<std::string> models_of(const Trace& trace) {
  std::vector<std::string> models = texts_of(trace, "models").value_or(std::vector<std::string>{});
  if (models.size() < 2) models.clear();
  return models;
}

std::vector<std::string> with_models(std::vector<std::string> paths, const std::vector<std::string>& models) {
  if (models.empty()) return paths;
  for (std::string& path : paths)
    if (std::none_of(models.begin() + 1, models.end(), [&](const auto& model) { return lies_in(path, model); }))
      path.insert(0, models.front() + ".");
  return paths;
}

std::string checkpoint_code(const std::vector<std::string>& modules, const std::vector<std::string>& models) {
  return R"(import functools

from torch.nn import Module
from torch.utils.checkpoint import checkpoint

)" + list_of_modules(modules, models) +
         apply_with("functools.partial(checkpoint, module.forward, use_reentrant=False)", Second::kRun, models);
}

std::string selective_code(const std::vector<std::string>& modules, const std::vector<std::string>& operators,
                           const std::vector<std::string>& models) {
  return R"(import functools

from torch.nn import Module
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

)" + list_of_modules(modules, models) +
         list_of(operators, "KEPT = {", "}") +
         apply_with("functools.partial(checkpoint, module.forward, use_reentrant=False, context_fn=CONTEXTS)",
                    Second::kRun, models) +
         R"(

def policy(context, operator, *args, **kwargs):
    schema = getattr(operator, "_schema", None)
    kept = schema is not None and schema.name in KEPT
    return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE


CONTEXTS = functools.partial(create_selective_checkpoint_contexts, policy)
)";
}

std::string budget_code(double budget, const std::vector<std::string>& models, bool compiles) {
  const char* compile =
      models.empty() ? "    model.compile()\n" : "    for model in models:\n        model.compile()\n";
  return fmt::format(R"(import torch._functorch.config


def apply({}):{}
    torch._functorch.config.activation_memory_budget = {:.2f}
{})",
                     models.empty() ? "model" : "*models", compiles ? "  # before the script compiles" : "", budget,
                     compiles ? "" : compile);
}

std::string fused_code() {
  return R"(import torch


def apply(model, optimizer):
    """One kernel updates all parameters, without temporary tensors: as fused=True where the optimizer is made.

    Where that is refused (parameters that are not floating-point numbers on a GPU), foreach=False there makes two
    temporary tensors of the size of one parameter at a time."""
    optimizer.defaults.update(fused=True, foreach=False)
    for group in optimizer.param_groups:
        group.update(fused=True, foreach=False)
        for parameter in group["params"]:
            state = optimizer.state.get(parameter)
            if state:  # the kernel counts steps on the device
                state["step"] = torch.as_tensor(state["step"], dtype=torch.float32, device=parameter.device)
)";
}

std::string early_update_code() {
  return R"(import copy


def apply(model, optimizer):
    """Updates each parameter in backward, as soon as its gradient is complete, and frees the gradient."""
    updated = set()  # in this step
    optimizer.register_step_post_hook(lambda stepped, *_: stepped is optimizer and updated.clear())
    for number, group in enumerate(optimizer.param_groups):
        for parameter in group["params"]:
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(update_of(optimizer, number, updated))


def update_of(optimizer, number, updated):
    own = copy.copy(optimizer)
    for name, value in vars(optimizer).items():
        if name != "step":  # that of a scheduler steps the whole optimizer
            vars(own).setdefault(name, value)

    def update(parameter):
        if parameter in updated:
            raise RuntimeError("a parameter has a second gradient before optimizer.step(), as with "
                               "checkpoint(use_reentrant=True); expected one in each step")
        updated.add(parameter)
        own.state = optimizer.state  # of all parameters; load_state_dict() replaces it, and the groups
        own.param_groups = [{**optimizer.param_groups[number], "params": [parameter]}]  # at the present learning rate
        own.step()
        parameter.grad = None

    return update
)";
}

std::string offload_code(const std::vector<std::string>& modules, Bytes least, const std::vector<std::string>& models) {
  return R"(import functools

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import Module

)" + list_of_modules(modules, models) +
         fmt::format("LEAST = {}  # bytes: smaller tensors stay on the device\n", least.count()) +
         apply_with("functools.partial(offloaded, module, module.forward)", Second::kNone, models) + R"(

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
)";
}

std::string micro_batch_code(int parts) {
  return fmt::format(R"(PARTS = {}


def micro_batches(batch):
    """PARTS equal pieces, along the first dimension, of a tensor or of a tuple, list or dict of tensors."""
    if hasattr(batch, "items"):
        return [dict(zip(batch, piece)) for piece in zip(*map(micro_batches, batch.values()))]
    if isinstance(batch, (tuple, list)):
        return list(zip(*map(micro_batches, batch)))
    if len(batch) % PARTS:
        raise ValueError(f"a batch of {{len(batch)}} has no {{PARTS}} equal pieces")
    return batch.chunk(PARTS)


# If the loss is a mean over the samples, each by itself, it and its gradients stay the same:
#     for inputs, labels in micro_batches((inputs, labels)):
#         (loss_of(model(inputs), labels) / PARTS).backward()
#     optimizer.step()
# A loss that compares samples of the batch, such as a contrastive one, and layers that normalise over the batch, such
# as BatchNorm, see one piece at a time, so the training is no longer the same.
)",
                     parts);
}

}  // namespace tidepool
