#include "simulator/studies/advise/proposals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/studies/advise/checkpoint.hpp"
#include "simulator/studies/advise/checkpoint_choice.hpp"
#include "simulator/studies/advise/micro_batches.hpp"
#include "simulator/studies/advise/offload_choice.hpp"
#include "simulator/studies/advise/optimizer_changes.hpp"
#include "simulator/studies/advise/python_code.hpp"
#include "simulator/studies/advise/step_uses.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kCheckpoints = 3;               // choices of modules that are shown
constexpr std::size_t kSelective = 2;                 // sets of operators that are shown
constexpr int kBudgetParts = 20;                      // budgets are tried in steps of 1/20
constexpr int kMostParts = 64;                        // of a batch
constexpr std::size_t kOffloads = 2;                  // choices of modules that are shown
constexpr Bytes kLeastCopied{std::int64_t{1} << 20};  // copying a smaller tensor costs latency and frees little

double ratio(Nanos time, Nanos base) {
  return static_cast<double>(time.count()) / static_cast<double>(std::max<std::int64_t>(base.count(), 1));
}

/// Kept operators that occur in these calls, each once.
std::vector<std::string> operators_in(const Trace& trace, const std::vector<const CheckpointedCall*>& calls) {
  KeptOperators names;
  for (const CheckpointedCall* call : calls)
    for (const std::size_t position : call->kept)
      names.emplace(operator_of(trace.text(trace.op(OpId{trace.events()[position].id}).name)));
  return {names.begin(), names.end()};
}

}  // namespace

bool has_operators(const Trace& trace) {
  return std::any_of(trace.ops().begin(), trace.ops().end(),
                     [&](const Op& op) { return trace.text(op.name).starts_with("aten::"); });
}

std::string compiled_ops(const Trace& trace) {
  const auto ops = trace.data().meta.find("ops");
  const bool known = ops != trace.data().meta.end() && (ops->second == "compiled" || ops->second == "graphs");
  return known ? ops->second : "";
}

bool is_better(const Change& a, const Change& b, Bytes capacity) {
  const auto over = [&](const Change& one) { return std::max(one.peak - capacity, Bytes{}); };
  return std::tuple{over(a), a.peak_is_least, a.overhead_ratio} <
         std::tuple{over(b), b.peak_is_least, b.overhead_ratio};
}

Change judged(Change change, const Question& question, const Trace& changed, Mechanism mechanism) {
  const Nanos launch = question.spec.machine.launch;
  change.between = ratios_of_times(question.step, changed, launch);
  return judged(std::move(change), question, baseline_time(changed, launch), mechanism);
}

Change judged(Change change, const Question& question, Nanos time, Mechanism mechanism) {
  const RunSpec& spec = question.spec;
  change.overhead_ratio = ratio(time, question.base);
  change.fits = change.peak <= spec.capacity;
  const std::optional<Bound> bound = best_bound({.trace = question.step,
                                                 .machine = spec.machine,
                                                 .capacity = std::max(spec.capacity, change.peak),
                                                 .swap = mechanism.swap,
                                                 .remat = mechanism.remat,
                                                 .assume = {},
                                                 .iterations = 1,
                                                 .steady = spec.steady,
                                                 .order = mechanism.order});
  if (!bound || !bound->feasible || bound->makespan <= Nanos{}) return change;
  change.bound = bound->makespan;
  change.gap = ratio(time, bound->makespan) - 1;
  return change;
}

std::vector<Change> checkpoints(const Question& question) {
  const CheckpointSearch search{question.step};
  std::vector<Change> changes;
  for (const CheckpointChoice& choice : search.choices(question.spec.capacity)) {
    if (changes.size() == kCheckpoints) break;
    const Trace changed = checkpointed_trace(question.step, choice.calls);
    Change change{.kind = "checkpoint",
                  .modules = choice.modules,
                  .code = checkpoint_code(choice.modules, models_of(question.step)),
                  .peak = changed.ideal_peak(),
                  .allocated = allocated_peak(changed)};
    changes.push_back(judged(std::move(change), question, changed, {.remat = true}));
  }
  return changes;
}

std::vector<Change> selective_checkpoints(const Question& question) {
  std::vector<Change> changes;
  for (const KeptOperators& kept : operators_to_keep(question.step)) {
    const CheckpointSearch search{question.step, kept};
    const std::vector<CheckpointChoice> choices = search.choices(question.spec.capacity);
    const auto keeps = [](const CheckpointChoice& choice) {
      return std::any_of(choice.calls.begin(), choice.calls.end(),
                         [](const auto* call) { return !call->kept.empty(); });
    };
    const auto choice = std::find_if(choices.begin(), choices.end(), keeps);
    if (choice == choices.end()) continue;
    const Trace changed = checkpointed_trace(question.step, choice->calls);
    const std::vector<std::string> operators = operators_in(question.step, choice->calls);
    Change change{.kind = "selective-checkpoint",
                  .modules = choice->modules,
                  .operators = operators,
                  .code = selective_code(choice->modules, operators, models_of(question.step)),
                  .peak = changed.ideal_peak(),
                  .allocated = allocated_peak(changed)};
    changes.push_back(judged(std::move(change), question, changed, {.remat = true}));
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [&](const Change& a, const Change& b) { return is_better(a, b, question.spec.capacity); });
  const auto alike = [](const Change& a, const Change& b) {
    return a.peak == b.peak && a.overhead_ratio == b.overhead_ratio;
  };
  changes.erase(std::unique(changes.begin(), changes.end(), alike), changes.end());
  if (changes.size() > kSelective) changes.erase(changes.begin() + kSelective, changes.end());
  return changes;
}

std::vector<Change> budgets(const Question& question) {
  if (!has_operators(question.step)) return {};
  const auto change_with = [&](int parts) -> std::optional<Change> {
    const double budget = static_cast<double>(parts) / kBudgetParts;
    RunSpec spec = question.spec;
    spec.capacity = kNoLimit;
    spec.policy = fmt::format("min-cut(budget={:.2f})", budget);
    const Result result = simulate(question.step, spec, true);
    if (result.outcome != Outcome::kOk || result.totals.peak >= question.step.ideal_peak()) return {};
    Change change{.kind = "budget",
                  .code = budget_code(budget, models_of(question.step), !compiled_ops(question.step).empty()),
                  .peak = result.totals.peak,
                  .peak_is_least = true,
                  .between = ratios_of_times(question.step, spec, result.realised)};
    return judged(std::move(change), {question.step, question.spec, result.baseline}, result.totals.makespan,
                  {.remat = true});
  };
  std::optional<Change> best;
  for (int parts = kBudgetParts; parts >= 0 && !(best && best->fits); --parts) {
    std::optional<Change> tried = change_with(parts);
    if (tried && (!best || tried->peak < best->peak)) best = std::move(tried);
  }
  return best ? std::vector{std::move(*best)} : std::vector<Change>{};
}

std::vector<Change> offloads(const Question& question) {
  const OffloadSearch search{question.step, question.spec.machine, kLeastCopied};
  std::vector<Change> changes;
  for (const OffloadChoice& choice : search.choices(question.spec.capacity)) {
    if (changes.size() == kOffloads) break;
    const OffloadedStep step = search.step(choice);
    const Trace changed = step.trace(question.spec.machine);
    Change change{.kind = "offload",
                  .modules = choice.modules,
                  .code = offload_code(choice.modules, kLeastCopied, models_of(question.step)),
                  .peak = changed.ideal_peak(),
                  .allocated = allocated_peak(changed),
                  .copied = step.copied()};
    changes.push_back(judged(std::move(change), question, changed, {.swap = true}));
  }
  return changes;
}

std::vector<Change> batches(const Question& question) {
  std::vector<Change> tried;
  for (int parts = 2; parts <= kMostParts && !(!tried.empty() && tried.back().fits); parts *= 2) {
    const std::optional<Trace> changed = with_micro_batches(question.step, parts);
    if (!changed) break;
    const Bytes peak = changed->ideal_peak();
    if (peak >= (tried.empty() ? question.step.ideal_peak() : tried.back().peak)) break;
    const Nanos time = baseline_time(*changed, question.spec.machine.launch);
    tried.push_back({.kind = "batch",
                     .code = micro_batch_code(parts),
                     .peak = peak,
                     .allocated = allocated_peak(*changed),
                     .overhead_ratio = ratio(time, question.base),
                     .between = ratios_of_times(question.step, *changed, question.spec.machine.launch),
                     .parts = parts,
                     .fits = peak <= question.spec.capacity});
  }
  if (tried.empty()) return {};
  const Bytes much{question.step.ideal_peak().count() / 100};  // more parts that save less only take time
  const auto enough = [&](const Change& change) { return change.peak <= tried.back().peak + much; };
  return {tried.back().fits ? tried.back() : *std::find_if(tried.begin(), tried.end(), enough)};
}

std::vector<Change> fused_optimizers(const Question& question) {
  const std::optional<Trace> changed = with_fused_optimizer(question.step);
  if (!changed || changed->ideal_peak() >= question.step.ideal_peak()) return {};
  const Nanos time = baseline_time(*changed, question.spec.machine.launch);
  return {{.kind = "optimizer",
           .code = fused_code(),
           .peak = changed->ideal_peak(),
           .allocated = allocated_peak(*changed),
           .overhead_ratio = ratio(time, question.base),
           .between = ratios_of_times(question.step, *changed, question.spec.machine.launch),
           .fits = changed->ideal_peak() <= question.spec.capacity}};
}

std::vector<Change> early_updates(const Question& question) {
  const std::optional<EarlyUpdates> changed = update_early(question.step);
  if (!changed || changed->trace.ideal_peak() >= question.step.ideal_peak()) return {};
  Change change{.kind = "early-updates",
                .code = early_update_code(),
                .peak = changed->trace.ideal_peak(),
                .allocated = allocated_peak(changed->trace)};
  return {judged(std::move(change), question, changed->trace, {.order = true})};
}

}  // namespace tidepool
