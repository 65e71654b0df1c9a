#include "simulator/studies/advise/advise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "simulator/run.hpp"
#include "simulator/studies/advise/micro_batches.hpp"
#include "simulator/studies/advise/optimizer_changes.hpp"
#include "simulator/studies/advise/proposals.hpp"
#include "simulator/studies/advise/step_uses.hpp"
#include "simulator/studies/audit/tune.hpp"
#include "simulator/studies/fit/fit.hpp"
#include "simulator/studies/launch/process.hpp"
#include "simulator/studies/text/interruptible.hpp"
#include "traces/base/error.hpp"
#include "traces/iteration.hpp"
#include "traces/one_device.hpp"

namespace tidepool {

namespace {

constexpr const char* kPlan = "plan";
constexpr const char* kAllocator = "allocator";
constexpr const char* kRecomputes = "tide-remat";
constexpr std::int64_t kLeastSaving = 100;  // a change that does not fit lowers the peak by at least 1/100

struct Kind {
  const char* name;
  std::vector<Change> (*propose)(const Question&);
};
constexpr std::array kKinds{Kind{"checkpoint", checkpoints},
                            Kind{"selective-checkpoint", selective_checkpoints},
                            Kind{"optimizer", fused_optimizers},
                            Kind{"early-updates", early_updates},
                            Kind{"offload", offloads},
                            Kind{"budget", budgets},
                            Kind{"batch", batches}};

bool has_modules(const Trace& trace) {
  return std::any_of(trace.ops().begin(), trace.ops().end(),
                     [&](const Op& op) { return op.phase == Phase::kForward && !trace.text(op.module).empty(); });
}

/// The commands that make the plan and, if a job can follow it, the command that runs the job with it. A job follows a
/// plan of one iteration.
std::string plan_code(const AdvisedStep& step, const PlanWords& words, const RunSpec& spec) {
  std::string code, trace = shell_word(words.trace);
  if (step.iteration) {
    trace = "step.tide";
    code = fmt::format("tidepool import {} --iteration {} -o {}\n", shell_word(words.trace), *step.iteration, trace);
  }
  code += fmt::format("tidepool simulate {} --pool {} --policy {} --capacity {}B --machine {}{} --plan-out run.plan\n",
                      trace, shell_word(spec.pool.text), shell_word(spec.policy.text), spec.capacity.count(),
                      shell_word(words.machine), has_operators(step.trace) ? " --first" : "");
  if (has_operators(step.trace)) code += fmt::format("tidepool run --plan run.plan --trace {} -- COMMAND\n", trace);
  if (compiled_ops(step.trace) == "graphs")
    code += fmt::format(
        "# For a job without tidepool: tidepool run --plan run.plan --trace {} --program-out step.json\n"
        "# and in the script, before it compiles (PyTorch 2.9 or later):\n"
        "#     from tidepool_torch.partitioner import partitioner\n"
        "#     torch._inductor.config.custom_partitioner_fn = partitioner(\"step.json\")\n",
        trace);
  return code;
}

std::optional<Change> plan_of(const Question& question, const AdvisedStep& advised, const PlanWords& words,
                              const std::string& planner) {
  RunSpec spec = question.spec;
  spec.policy = planner;
  if (has_operators(advised.trace)) spec.steady = false, spec.iterations = 1;  // as with --first
  const Result result = simulate(question.step, spec, true);
  if (result.outcome != Outcome::kOk) return {};
  Change change{.kind = "plan",
                .code = plan_code(advised, words, spec),
                .peak = result.totals.peak,
                .between = ratios_of_times(question.step, spec, result.realised)};
  const Mechanism mechanism{.swap = !planner.starts_with(kRecomputes), .remat = true};
  return judged(std::move(change), {question.step, spec, result.baseline}, result.totals.makespan, mechanism);
}

/// Lets one kind of changes after the other have its share of the time.
class Turns {
 public:
  Turns(const AdviceOptions& tried, Advice& advice) : tried_{tried}, advice_{advice} {}

  /// Adds the changes that `propose` gives, unless it takes longer than half of the time that is left.
  void take(const std::string& kind, const std::function<std::vector<Change>()>& propose) {
    if (Interruptible::asked()) return;
    std::optional<std::vector<Change>> changes;
    if (!tried_.limit) {
      changes = propose();
    } else {
      using std::chrono::milliseconds;
      const milliseconds left = *tried_.limit - std::chrono::duration_cast<milliseconds>(used_);
      const milliseconds share = std::max(left / 2, milliseconds{});
      if (const auto text = in_time(
              share, [&] { return text_of(propose()); }, used_))
        changes = changes_of(*text);
      if (!changes)
        advice_.notes.push_back(Interruptible::asked()
                                    ? fmt::format("{} was interrupted", kind)
                                    : fmt::format("{} was not done within its share of the time, {:.1f} s "
                                                  "(--time-limit)",
                                                  kind, static_cast<double>(share.count()) / 1000));
    }
    if (!changes) {
      advice_.complete = false;
      return;
    }
    if (tried_.done) tried_.done(kind, *changes);
    for (Change& change : *changes) advice_.changes.push_back(std::move(change));
  }

 private:
  const AdviceOptions& tried_;
  Advice& advice_;
  std::chrono::nanoseconds used_{0};
};

/// Adds the setting of PyTorch's allocator that reserves the fewest bytes, if a step's tensors fit but the bytes that
/// the default settings reserve for them do not. Adds none if no setting fits. The time that a setting costs is not
/// counted.
void add_allocator(Advice& advice, const Trace& step, Bytes capacity) {
  const std::vector<AllocatorSetting> settings = allocator_settings(false);
  const std::vector<TunedSetting> unlimited = tune(step, std::span{settings}.first(1), kNoLimit);
  if (unlimited.front().reserved <= capacity) return;
  advice.reserved = unlimited.front().reserved;
  for (const TunedSetting& tuned : tune(step, settings, capacity)) {
    if (tuned.outcome != Outcome::kOk) break;
    if (tuned.setting.conf.empty()) continue;
    advice.changes.push_back({.kind = kAllocator,
                              .code = fmt::format("export PYTORCH_CUDA_ALLOC_CONF={}\n", tuned.setting.conf),
                              .peak = advice.base_peak,
                              .reserved = tuned.reserved,
                              .fits = true});
    break;
  }
}

using Json = nlohmann::ordered_json;

Json to_json(const Change& change) {
  Json one{{"kind", change.kind}, {"modules", change.modules},         {"code", change.code},
           {"fits", change.fits}, {"peak_bytes", change.peak.count()}, {"overhead_ratio", change.overhead_ratio}};
  if (change.between) one["time_low_ratio"] = change.between->first, one["time_high_ratio"] = change.between->second;
  if (change.peak_is_least) one["peak_is_least"] = true;
  if (change.allocated) one["allocated_bytes"] = change.allocated->count();
  if (!change.operators.empty()) one["operators"] = change.operators;
  if (change.parts > 0) one["parts"] = change.parts;
  if (change.copied > Bytes{}) one["copied_bytes"] = change.copied.count();
  if (change.reserved) one["reserved_bytes"] = change.reserved->count();
  one["bound_ns"] = change.bound ? Json(change.bound->count()) : Json(nullptr);
  one["gap"] = change.gap ? Json(*change.gap) : Json(nullptr);
  return one;
}

std::optional<std::int64_t> whole_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  return found->get<std::int64_t>();
}

}  // namespace

const std::vector<std::string>& kinds_of_changes() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Kind& kind : kKinds) names.emplace_back(kind.name);
    names.emplace_back(kAllocator);
    names.emplace_back(kPlan);
    return names;
  }();
  return kNames;
}

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
  if (found && found->trace.events().size() == trace.events().size()) return {std::move(trace)};
  return found ? std::move(*found) : AdvisedStep{std::move(trace)};
}

std::string missing_for_advice(const Trace& step) {
  if (!has_modules(step))
    return "no forward op has a module, so nothing can be said of modules; expected a training step as recorded by "
           "`tidepool record --torch` or `record --dry --torch`";
  if (!has_training(step))
    return "no backward op is recorded; expected a whole training step, forward, backward and optimizer";
  if (lacks_uses(step))
    return "no op says which buffers it uses; expected a training step as recorded by `tidepool record --torch` or "
           "`record --dry --torch`";
  return "";
}

Advice advise(const AdvisedStep& step, const PlanWords& words, const RunSpec& spec, const AdviceOptions& tried) {
  if (const std::string missing = missing_for_advice(step.trace); !missing.empty()) throw InputError{missing};
  Advice advice{.base_peak = step.trace.ideal_peak(), .base_allocated = allocated_peak(step.trace), .changes = {}};
  const auto is_tried = [&](const char* kind) {
    return std::find(tried.kinds.begin(), tried.kinds.end(), kind) != tried.kinds.end();
  };
  if (advice.base_peak <= spec.capacity) {
    if (is_tried(kAllocator)) add_allocator(advice, step.trace, spec.capacity);
    return advice;
  }
  const Question question{step.trace, spec, baseline_time(step.trace, spec.machine.launch)};
  Turns turns{tried, advice};
  for (const Kind& kind : kKinds)
    if (is_tried(kind.name)) turns.take(kind.name, [&] { return kind.propose(question); });
  const std::string compiled = compiled_ops(step.trace);
  const bool plans = is_tried(kPlan) && compiled != "compiled";
  for (const std::string& planner : plans ? tried.planners : std::vector<std::string>{}) {
    if (compiled == "graphs" && !planner.starts_with(kRecomputes)) continue;
    turns.take(fmt::format("{} ({})", kPlan, planner), [&] {
      std::optional<Change> plan = plan_of(question, step, words, planner);
      return plan ? std::vector{std::move(*plan)} : std::vector<Change>{};
    });
  }
  const Bytes highest = advice.base_peak - Bytes{advice.base_peak.count() / kLeastSaving};
  std::erase_if(advice.changes, [&](const Change& change) { return !change.fits && change.peak > highest; });
  std::stable_sort(advice.changes.begin(), advice.changes.end(),
                   [&](const Change& a, const Change& b) { return is_better(a, b, spec.capacity); });
  if (Interruptible::asked()) return advice;
  if (compiled == "compiled")
    advice.notes.push_back(
        "the step is that of torch.compile: with a change, it may compile to other kernels and another peak; "
        "plans were not tried, since the kernels do not say what the compiler saves");
  if (compiled == "graphs")
    advice.notes.push_back(
        "the step is that of torch.compile, operator by operator: compiled, it fuses some, and its peak may be lower; "
        "of the plans, only those that recompute were tried, since the compiler copies nothing to the host");
  if (is_tried("early-updates"))
    if (const std::string why = no_early_updates(step.trace); !why.empty())
      advice.notes.push_back("early-updates was not tried: " + why);
  if (is_tried("batch"))
    if (const std::string why = no_micro_batches(step.trace); !why.empty())
      advice.notes.push_back("batch was not tried: " + why);
  if ((is_tried("selective-checkpoint") || is_tried("budget")) && !has_operators(step.trace))
    advice.notes.push_back(
        "selective-checkpoint and budget were not tried: the trace has kernels in the place of operators; expected one "
        "of `record --torch`, on a GPU or dry without --kernels");
  return advice;
}

std::string text_of(const std::vector<Change>& changes) {
  Json list = Json::array();
  for (const Change& change : changes) list.push_back(to_json(change));
  return list.dump();
}

std::vector<Change> changes_of(const std::string& text) {
  std::vector<Change> changes;
  for (const Json& one : Json::parse(text)) {
    Change change{.kind = one["kind"], .modules = one["modules"], .code = one["code"], .peak = {}};
    change.fits = one["fits"];
    change.peak = Bytes{one["peak_bytes"].get<std::int64_t>()};
    change.overhead_ratio = one["overhead_ratio"];
    if (one.contains("time_low_ratio")) change.between.emplace(one["time_low_ratio"], one["time_high_ratio"]);
    change.peak_is_least = one.contains("peak_is_least");
    if (one.contains("operators")) change.operators = one["operators"];
    if (const auto bytes = whole_at(one, "allocated_bytes")) change.allocated = Bytes{*bytes};
    if (const auto parts = whole_at(one, "parts")) change.parts = static_cast<int>(*parts);
    if (const auto bytes = whole_at(one, "copied_bytes")) change.copied = Bytes{*bytes};
    if (const auto bytes = whole_at(one, "reserved_bytes")) change.reserved = Bytes{*bytes};
    if (const auto time = whole_at(one, "bound_ns")) change.bound = Nanos{*time};
    if (!one["gap"].is_null()) change.gap = one["gap"].get<double>();
    changes.push_back(std::move(change));
  }
  return changes;
}

nlohmann::ordered_json to_json(const Advice& advice) {
  Json object{{"base_peak_bytes", advice.base_peak.count()},
              {"base_allocated_bytes", advice.base_allocated.count()},
              {"changes", Json::array()}};
  for (const Change& change : advice.changes) object["changes"].push_back(to_json(change));
  if (advice.reserved) object["reserved_bytes"] = advice.reserved->count();
  object["notes"] = advice.notes;
  return object;
}

}  // namespace tidepool
