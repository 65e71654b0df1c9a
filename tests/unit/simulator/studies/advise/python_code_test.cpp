
#include "simulator/studies/advise/python_code.hpp"

#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::python_code_test {

namespace {

std::vector<std::string> models_told_by(const char* meta) {
  TraceBuilder build;
  if (meta != nullptr) build.meta()["models"] = meta;
  return models_of(build.finish());
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a job has the models that its recording names, if there are several") {
  CHECK(models_told_by(R"(["Discriminator","Generator"])") == Names{"Discriminator", "Generator"});
  CHECK(models_told_by(R"(["Net"])").empty());
  CHECK(models_told_by("not a list").empty());
  CHECK(models_told_by(nullptr).empty());
}

TEST_CASE("paths of the first of several models get its name, and paths of the others have their names already") {
  const Names paths{"main.0", "Generator.main.8", "GeneratorX.main", "Generator"};
  CHECK(with_models(paths, {"Discriminator", "Generator"}) ==
        Names{"Discriminator.main.0", "Generator.main.8", "Discriminator.GeneratorX.main", "Generator"});
  CHECK(with_models(paths, {}) == paths);
}

TEST_CASE("the code for a job of several models is a Python file with apply(*models)") {
  const Names models{"Discriminator", "Generator"};
  CHECK(checkpoint_code({"main.0", "Generator.main.8"}, models) == R"(import functools

from torch.nn import Module
from torch.utils.checkpoint import checkpoint

MODULES = [
    "Discriminator.main.0",
    "Generator.main.8",
]


def apply(*models):
    without_caches(*models)
    for name in MODULES:
        module = module_of(models, name)
        if getattr(module.forward, "__func__", None) is Module.forward:
            raise TypeError(f"{name}: a {type(module).__name__}, which is never called; expected a module with a forward")
        module.forward = functools.partial(checkpoint, module.forward, use_reentrant=False)


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


def without_caches(*models):
    """Models of transformers stop keeping keys and values: a layer that runs again would add its own once more."""
    for part in (part for model in models for part in model.modules()):
        if getattr(getattr(part, "config", None), "use_cache", False):
            part.config.use_cache = False
)");
  CHECK_THAT(selective_code({"main.0"}, {"aten::mm"}, models), ContainsSubstring("module = module_of(models, name)"));
  CHECK_THAT(offload_code({"main.0"}, 1_B, models), ContainsSubstring("module = module_of(models, name)"));
  CHECK(budget_code(0.5, models) ==
        "import torch._functorch.config\n\n\ndef apply(*models):\n"
        "    torch._functorch.config.activation_memory_budget = 0.50\n    for model in models:\n"
        "        model.compile()\n");
  CHECK(budget_code(0.5, {}, true) ==
        "import torch._functorch.config\n\n\ndef apply(model):  # before the script compiles\n"
        "    torch._functorch.config.activation_memory_budget = 0.50\n");
}

}  // namespace tidepool::python_code_test
