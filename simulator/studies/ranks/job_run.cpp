#include "simulator/studies/ranks/job_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/studies/ranks/collective_table.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/total.hpp"

namespace tidepool {
namespace {

/// Sets the costs of all-reduces with recorded sizes to the table's times; other collectives keep their recorded costs.
void price(const Job& job, const CollectiveTable& table, const std::string& name, std::vector<Nanos>& costs) {
  bool any = false;
  for (std::size_t i = 0; i < job.collectives.size(); ++i) {
    const JobCollective& collective = job.collectives[i];
    if (collective.name != "all_reduce" || !collective.input) continue;
    const std::size_t devices = job.groups[collective.group].ranks.size();
    const std::optional<Nanos> cost = table.all_reduce(devices, *collective.input);
    if (!cost) refuse("{}: no times of {} devices; expected those of collective {}, all_reduce", name, devices, i);
    costs[i] = *cost;
    any = true;
  }
  if (!any) refuse("{}: the job has no all_reduce with a recorded size; expected one to price", name);
}

void change_programs(const JobChange& change, std::vector<RankProgram>& programs) {
  for (const std::size_t rank : change.ranks)
    if (rank >= programs.size()) refuse("--rank: {}; expected ranks of the job, 0 to {}", rank, programs.size() - 1);
  for (std::size_t rank = 0; rank < programs.size(); ++rank)
    if (change.ranks.empty() || std::find(change.ranks.begin(), change.ranks.end(), rank) != change.ranks.end())
      programs[rank] = scaled(std::move(programs[rank]), change.factor, change.what);
}

/// Refuses times whose sum over all ranks is above Total::kMost. No path is longer than this sum.
void check_times(const std::string& path, const std::vector<RankProgram>& programs, const std::vector<Nanos>& costs,
                 double factor) {
  const auto number = [](Nanos time) { return std::abs(static_cast<double>(time.count())); };
  double sum = 0;
  for (const Nanos cost : costs) sum += number(cost);
  for (const RankProgram& program : programs) {
    sum += number(program.start);
    for (const RankOp& op : program.ops)
      sum += number(op.lag) + (number(op.gap) + number(op.duration)) * std::max(factor, 1.0);
  }
  if (sum > static_cast<double>(Total::kMost))
    refuse("{}: all times add up to more than 73 years; expected a step", path);
}

/// The largest difference between the simulated and the recorded end of a collective, over all ranks; none if no end is
/// recorded.
std::optional<Nanos> largest_difference(const LoadedJob& loaded, const JobTimes& times) {
  std::optional<Nanos> largest;
  for (std::size_t i = 0; i < loaded.job.collectives.size(); ++i) {
    const JobCollective& collective = loaded.job.collectives[i];
    const std::vector<std::size_t>& ranks = loaded.job.groups[collective.group].ranks;
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      const Op& op = loaded.traces[ranks[k]].op(collective.ops[k]);
      if (op.start < Nanos{}) continue;
      const Nanos off = times.collectives[i].end - (loaded.job.ranks[ranks[k]].start + op.start + op.duration);
      largest = std::max({largest.value_or(Nanos{}), off, -off});
    }
  }
  return largest;
}

}  // namespace

ChangedJob changed_job(const LoadedJob& job, const std::string& path, const JobChange& change) {
  ChangedJob changed{rank_programs(job, path), recorded_costs(job.job)};
  if (!change.table.empty()) price(job.job, read_collective_table(change.table), change.table, changed.costs);
  check_times(path, changed.programs, changed.costs, change.factor);
  change_programs(change, changed.programs);
  return changed;
}

JobResult run_job(const LoadedJob& job, const std::string& path, const JobChange& change, std::size_t threads) {
  JobResult result;
  static_cast<ChangedJob&>(result) = changed_job(job, path, change);
  for (const RankProgram& program : result.programs) result.recorded = std::max(result.recorded, program.recorded_end);
  result.times = simulate_job(job, path, result.programs, result.costs, threads);
  result.path = critical_path_of(job, result.programs, result.times);
  result.waits = waits_of(job, result.times, result.programs);
  if (change.factor == 1 && change.table.empty()) result.off = largest_difference(job, result.times);
  return result;
}

}  // namespace tidepool
