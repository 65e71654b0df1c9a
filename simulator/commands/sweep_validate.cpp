#include "simulator/commands/sweep_validate.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string>

#include "simulator/run.hpp"

namespace tidepool {
namespace {

struct Fastest {
  RunSpec spec;
  std::int64_t makespan = 0;
};

/// By machine and capacity, of those that ended with addresses.
std::map<std::string, std::map<Bytes, Fastest>> fastest_runs(const SweepPart& part, const Database& database) {
  std::map<std::string, std::map<Bytes, Fastest>> best;
  for (std::size_t i = 0; i < part.grid.size(); ++i) {
    const RunSpec spec = part.grid.at(i);
    const std::optional<Row> row = database.find(run_key(part.trace.trace, spec));
    if (!row || text_at(*row, "outcome") != "ok" || !std::get<bool>(at(*row, "addresses"))) continue;
    const std::int64_t makespan = std::get<std::int64_t>(at(*row, "makespan_ns"));
    const auto [known, added] = best[text_at(*row, "machine_hash")].try_emplace(spec.capacity, Fastest{spec, makespan});
    if (!added && makespan < known->second.makespan) known->second = {spec, makespan};
  }
  return best;
}

void print_row(const MeasuredRun& run, const RunSpec& spec, Nanos predicted) {
  std::string time = "-", error = "-";
  if (run.measured) {
    time = to_text(*run.measured);
    if (spec.iterations == 1 && predicted > Nanos{})
      error = fmt::format(
          "{:+.2f} %", 100 * (static_cast<double>(run.measured->count()) / static_cast<double>(predicted.count()) - 1));
  }
  fmt::print("{:<28}{:<14}{:>14}{:>14}{:>14}{:>12}  {}{}\n", spec.policy, spec.pool, to_text(spec.capacity),
             to_text(predicted), time, error, run.outcome, run.message.empty() ? "" : ": " + run.message);
}

}  // namespace

int validate_best(std::span<const SweepPart> parts, int count, const std::string& backend, PlanExecutor& executor,
                  Database& database) {
  int code = 0;
  for (const SweepPart& part : parts)
    for (const auto& [machine, best] : fastest_runs(part, database)) {
      const auto name = std::filesystem::path{part.trace.name}.filename().string();
      fmt::print("\n{} on {}, executed by {}\n", name, best.begin()->second.spec.machine.name, backend);
      fmt::print("{:<28}{:<14}{:>14}{:>14}{:>14}{:>12}  {}\n", "policy", "pool", "capacity", "predicted", "measured",
                 "error", "outcome");
      int left = count;
      for (const auto& [capacity, fastest] : best) {
        if (left-- == 0) break;
        const Trace& trace = part.trace.trace;
        const Result result = simulate(trace, fastest.spec, true);
        std::vector<MeasuredRun> runs =
            executor.execute(trace, {trace.hash(), fastest.spec, result.totals, result.realised});
        for (MeasuredRun& run : runs) {
          run.run_key = run_key(trace, fastest.spec);
          print_row(run, fastest.spec, result.totals.makespan);
          if (run.outcome != "ok") code = 1;
        }
        database.insert(runs);
      }
    }
  return code;
}

}  // namespace tidepool
