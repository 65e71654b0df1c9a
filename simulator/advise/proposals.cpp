#include "simulator/advise/proposals.hpp"

#include <algorithm>
#include <utility>

#include "simulator/advise/checkpoint_choice.hpp"
#include "simulator/advise/offload_choice.hpp"
#include "simulator/advise/python_code.hpp"
#include "simulator/bounds/bound.hpp"
#include "simulator/run.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kCheckpoints = 3;               // choices of modules that are shown
constexpr std::size_t kOffloads = 2;                  // the same
constexpr Bytes kLeastCopied{std::int64_t{1} << 20};  // what is smaller costs a copy's latency and gives nothing

double ratio(Nanos time, Nanos base) {
  return static_cast<double>(time.count()) / static_cast<double>(std::max<std::int64_t>(base.count(), 1));
}

}  // namespace

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
                                                 .steady = spec.steady});
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
                  .code = checkpoint_code(choice.modules),
                  .peak = changed.ideal_peak()};
    const Nanos time = baseline_time(changed, question.spec.machine.launch);
    changes.push_back(judged(std::move(change), question, time, {.remat = true}));
  }
  return changes;
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
                  .code = offload_code(choice.modules, kLeastCopied),
                  .peak = changed.ideal_peak(),
                  .copied = step.copied()};
    const Nanos time = baseline_time(changed, question.spec.machine.launch);
    changes.push_back(judged(std::move(change), question, time, {.swap = true}));
  }
  return changes;
}

}  // namespace tidepool
