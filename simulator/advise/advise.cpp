#include "simulator/advise/advise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "simulator/advise/checkpoint_choice.hpp"
#include "simulator/bounds/bound.hpp"
#include "simulator/fit/fit.hpp"
#include "simulator/launch/process.hpp"
#include "simulator/run.hpp"
#include "traces/error.hpp"
#include "traces/iteration.hpp"
#include "traces/json_text.hpp"
#include "traces/refuse.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kCheckpoints = 3;  // choices of modules that are shown

bool has_modules(const Trace& trace) {
  return std::any_of(trace.ops().begin(), trace.ops().end(),
                     [&](const Op& op) { return op.phase == Phase::kForward && !trace.text(op.module).empty(); });
}

/// The bound on what a mechanism can do, and the gap to it.
void compare_with_bound(Change& change, const Trace& step, const RunSpec& spec, Nanos time, bool swap, bool remat) {
  const std::optional<Bound> bound = best_bound({.trace = step,
                                                 .machine = spec.machine,
                                                 .capacity = std::max(spec.capacity, change.peak),
                                                 .swap = swap,
                                                 .remat = remat,
                                                 .assume = {},
                                                 .iterations = 1,
                                                 .steady = spec.steady});
  if (!bound || !bound->feasible || bound->makespan <= Nanos{}) return;
  change.bound = bound->makespan;
  change.gap = static_cast<double>(time.count()) / static_cast<double>(bound->makespan.count()) - 1;
}

double ratio(Nanos time, Nanos base) {
  return static_cast<double>(time.count()) / static_cast<double>(std::max<std::int64_t>(base.count(), 1));
}

void add_checkpoints(Advice& advice, const Trace& step, const RunSpec& spec) {
  const CheckpointSearch search{step};
  const Nanos base = baseline_time(step, spec.machine.launch);
  const std::vector<CheckpointChoice> choices = search.choices(spec.capacity);
  for (std::size_t i = 0; i < std::min(choices.size(), kCheckpoints); ++i) {
    const Trace changed = checkpointed_trace(step, choices[i].calls);
    const Nanos time = baseline_time(changed, spec.machine.launch);
    Change change{.kind = "checkpoint",
                  .modules = choices[i].modules,
                  .code = checkpoint_code(choices[i].modules),
                  .peak = changed.ideal_peak(),
                  .overhead_ratio = ratio(time, base),
                  .bound = {},
                  .gap = {},
                  .fits = changed.ideal_peak() <= spec.capacity};
    compare_with_bound(change, step, spec, time, false, true);
    advice.changes.push_back(std::move(change));
  }
}

/// Whether the ops are PyTorch's operators, which a live job can be compared with; in a dry recording they are kernels.
bool has_operators(const Trace& trace) {
  return std::any_of(trace.ops().begin(), trace.ops().end(),
                     [&](const Op& op) { return trace.text(op.name).starts_with("aten::"); });
}

/// The commands that make the plan and, where a job can follow it, carry it out.
std::string plan_code(const AdvisedStep& step, const PlanWords& words, const RunSpec& spec) {
  std::string code, trace = shell_word(words.trace);
  if (step.iteration) {
    trace = "step.tide";
    code = fmt::format("tidepool import {} --iteration {} -o {}\n", shell_word(words.trace), *step.iteration, trace);
  }
  code += fmt::format("tidepool simulate {} --pool {} --policy {} --capacity {}B --machine {} --plan-out run.plan\n",
                      trace, shell_word(spec.pool.text), shell_word(spec.policy.text), spec.capacity.count(),
                      shell_word(words.machine));
  if (has_operators(step.trace)) code += fmt::format("tidepool run --plan run.plan --trace {} -- COMMAND\n", trace);
  return code;
}

void add_plan(Advice& advice, const AdvisedStep& advised, const PlanWords& words, RunSpec spec,
              const std::string& planner) {
  const Trace& step = advised.trace;
  spec.policy = planner;
  const Result result = simulate(step, spec);
  if (result.outcome != Outcome::kOk) return;
  Change change{.kind = "plan",
                .modules = {},
                .code = plan_code(advised, words, spec),
                .peak = result.totals.peak,
                .overhead_ratio = ratio(result.totals.makespan, result.baseline),
                .bound = {},
                .gap = {},
                .fits = result.totals.peak <= spec.capacity};
  compare_with_bound(change, step, spec, result.totals.makespan, planner != "tide-remat", true);
  advice.changes.push_back(std::move(change));
}

}  // namespace

AdvisedStep step_to_advise(Trace trace) {
  const auto count =
      static_cast<std::size_t>(std::count_if(trace.data().marks.begin(), trace.data().marks.end(),
                                             [](const Mark& mark) { return mark.kind == MarkKind::kIteration; }));
  std::optional<AdvisedStep> found;
  for (std::size_t i = 0; i < count; ++i) {
    Trace step = one_iteration(trace, i);
    if (has_modules(step) && has_training(step) && (!found || step.ideal_peak() > found->trace.ideal_peak()))
      found.emplace(AdvisedStep{std::move(step), i});
  }
  if (found && found->trace.steps().size() == trace.steps().size()) return {std::move(trace)};
  return found ? std::move(*found) : AdvisedStep{std::move(trace)};
}

Advice advise(const AdvisedStep& step, const PlanWords& words, const RunSpec& spec,
              const std::vector<std::string>& planners) {
  if (!has_modules(step.trace))
    refuse(
        "no forward op has a module, so nothing can be said of modules; expected a training step as recorded by "
        "`tidepool record --torch` or `record --dry --torch`");
  if (!has_training(step.trace))
    refuse("no backward op is recorded; expected a whole training step, forward, backward and optimizer");
  Advice advice{.base_peak = step.trace.ideal_peak(), .changes = {}};
  if (advice.base_peak <= spec.capacity) return advice;
  add_checkpoints(advice, step.trace, spec);
  for (const std::string& planner : planners) add_plan(advice, step, words, spec, planner);
  std::stable_sort(advice.changes.begin(), advice.changes.end(), [&](const Change& a, const Change& b) {
    const auto over = [&](const Change& one) { return std::max(one.peak - spec.capacity, Bytes{}); };
    return std::tuple{over(a), a.overhead_ratio} < std::tuple{over(b), b.overhead_ratio};
  });
  return advice;
}

std::string checkpoint_code(const std::vector<std::string>& modules) {
  std::string names;
  for (const std::string& module : modules) names += "    " + json_text(nlohmann::json(module)) + ",\n";
  return R"(import functools

from torch.nn import Module
from torch.utils.checkpoint import checkpoint

MODULES = [
)" + names +
         R"(]


def apply(model):
    for name in MODULES:
        module = model.get_submodule(name)
        if getattr(module.forward, "__func__", None) is Module.forward:
            raise TypeError(f"{name}: a {type(module).__name__}, which is never called; expected a module with a forward")
        module.forward = functools.partial(checkpoint, module.forward, use_reentrant=False)
)";
}

}  // namespace tidepool
