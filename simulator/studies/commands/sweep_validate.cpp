#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "simulator/run.hpp"
#include "simulator/studies/commands/sweep_run.hpp"
#include "traces/base/error.hpp"

namespace tidepool {
namespace {

struct Candidate {
  RunSpec spec;
  std::int64_t makespan = 0;
};

/// For each machine, the runs that ended well on a pool with addresses: all of them, or the fastest run at each of the
/// `count` least capacities.
std::map<std::string, std::vector<RunSpec>> chosen_runs(const SweepPart& part, std::optional<int> count,
                                                        const Database& database) {
  std::map<std::string, std::vector<RunSpec>> chosen;
  std::map<std::string, std::map<Bytes, Candidate>> fastest;
  for (std::size_t i = 0; i < part.grid.size(); ++i) {
    const RunSpec spec = part.grid.at(i);
    const std::optional<Row> row = database.find(run_key(part.trace.trace, spec));
    if (!row || text_at(*row, "outcome") != "ok" || !std::get<bool>(at(*row, "addresses"))) continue;
    const std::string machine = text_at(*row, "machine_hash");
    if (!count) {
      chosen[machine].push_back(spec);
      continue;
    }
    const std::int64_t makespan = std::get<std::int64_t>(at(*row, "makespan_ns"));
    const auto [known, added] = fastest[machine].try_emplace(spec.capacity, Candidate{spec, makespan});
    if (!added && makespan < known->second.makespan) known->second = {spec, makespan};
  }
  for (const auto& [machine, by_capacity] : fastest)
    for (const auto& [capacity, candidate] : by_capacity)
      if (static_cast<int>(chosen[machine].size()) < *count) chosen[machine].push_back(candidate.spec);
  return chosen;
}

bool copies(const Plan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
    return action.verb == Verb::kSwapOut || action.verb == Verb::kSwapIn;
  });
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The run with the median time; the last run if it did not end well or its time was not measured.
const MeasuredRun& typical(std::vector<MeasuredRun>& runs) {
  if (runs.back().outcome != "ok" || !runs.back().measured) return runs.back();
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(),
                   [](const MeasuredRun& a, const MeasuredRun& b) { return *a.measured < *b.measured; });
  return *middle;
}

/// Relative error of the plan's predicted time: measured / predicted - 1.
std::optional<double> error_of(const MeasuredRun& run) {
  if (!run.measured || !run.predicted || *run.predicted <= Nanos{}) return {};
  return static_cast<double>(run.measured->count()) / static_cast<double>(run.predicted->count()) - 1;
}

void print_row(const MeasuredRun& run, const RunSpec& spec, Nanos step) {
  const std::optional<double> error = error_of(run);
  const Nanos predicted = run.predicted.value_or(step);
  fmt::print("{:<28}{:<14}{:>14}{:>14}{:>14}{:>12}  {}{}\n", spec.policy.text, spec.pool.text, to_text(spec.capacity),
             to_text(predicted), run.measured ? to_text(*run.measured) : "-",
             error ? fmt::format("{:+.2f} %", 100 * *error) : "-", run.outcome,
             run.message.empty() ? "" : ": " + run.message);
}

}  // namespace

std::optional<int> parse_validated(const std::string& text) {
  if (text == "all") return {};
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count < 1)
    throw InputError{fmt::format("--validate: '{}' is not a number of plans; expected 1 or more, or all", text)};
  return count;
}

int validate_runs(std::span<const SweepPart> parts, std::optional<int> count, const std::string& backend,
                  PlanExecutor& executor, Database& database) {
  int code = 0;
  std::vector<double> errors;
  for (const SweepPart& part : parts)
    for (const auto& [machine, specs] : chosen_runs(part, count, database)) {
      fmt::print("\n{} on {}, executed by {}\n", title_of(part, parts), specs.front().machine.name, backend);
      fmt::print("{:<28}{:<14}{:>14}{:>14}{:>14}{:>12}  {}\n", "policy", "pool", "capacity", "predicted", "measured",
                 "error", "outcome");
      for (const RunSpec& spec : specs) {
        const Trace& trace = part.trace.trace;
        const Result result = simulate(trace, spec, true);
        std::vector<MeasuredRun> runs = executor.execute(trace, {trace.hash(), spec, result.totals, result.realised});
        for (MeasuredRun& run : runs) run.run_key = run_key(trace, spec);
        database.insert(runs);
        const MeasuredRun& run = typical(runs);
        print_row(run, spec, result.totals.makespan);
        if (run.outcome != "ok") code = 1;
        const std::optional<double> error = error_of(run);
        if (error && copies(result.realised)) errors.push_back(std::abs(*error));
      }
    }
  if (!errors.empty()) {
    const std::size_t plans = errors.size();
    fmt::print("\nplans that copy: {} measured, {:.2f} % from their prediction in the median\n", plans,
               100 * median(std::move(errors)));
  }
  return code;
}

}  // namespace tidepool
