// Results of a simulated job for people, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "simulator/studies/ranks/job_run.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

double percent(Nanos part, Nanos whole) {
  return whole == Nanos{} ? 0 : static_cast<double>(part.count()) * 100 / static_cast<double>(whole.count());
}

Nanos own_work(const RankProgram& program) {
  Nanos sum;
  for (const RankOp& op : program.ops)
    if (op.collective == RankOp::kNone && !op.host_wait) sum += op.duration;
  return sum;
}

Nanos end_of(const std::vector<OpTimes>& ops) {
  Nanos end;
  for (const OpTimes& op : ops) end = std::max(end, op.end);
  return end;
}

/// The rank for which another rank waited longest (the lowest of several), and the time of these waits.
std::pair<std::size_t, Nanos> most_awaited(const std::vector<Nanos>& waits) {
  const auto most = std::max_element(waits.begin(), waits.end());
  return {static_cast<std::size_t>(most - waits.begin()), *most};
}

void print_collectives(const LoadedJob& loaded, const JobResult& result) {
  const Job& job = loaded.job;
  if (job.collectives.empty()) return;
  std::vector<Nanos> waited(job.collectives.size());
  for (std::size_t rank = 0; rank < result.programs.size(); ++rank)
    for (std::size_t op = 0; op < result.programs[rank].ops.size(); ++op)
      if (const std::uint32_t number = result.programs[rank].ops[op].collective; number != RankOp::kNone)
        waited[number] += result.times.collectives[number].begin - result.times.ranks[rank][op].start;
  fmt::print("\n{:>10}  {:<16} {:>5} {:>10} {:>10} {:>10} {:>10}  {:>5} {:>10}\n", "collective", "", "ranks", "input",
             "begins", "cost", "ends", "last", "waited");
  for (std::size_t i = 0; i < job.collectives.size(); ++i) {
    const JobCollective& collective = job.collectives[i];
    const CollectiveTimes& times = result.times.collectives[i];
    fmt::print("{:>10}  {:<16} {:>5} {:>10} {:>10} {:>10} {:>10}  {:>5} {:>10}\n", i, collective.name,
               collective.ops.size(), collective.input ? to_text(*collective.input) : "-", to_text(times.begin),
               to_text(result.costs[i]), to_text(times.end), times.last, to_text(waited[i]));
  }
}

void print_ranks(const LoadedJob& loaded, const JobResult& result) {
  fmt::print("\n{:>10}  {:>10} {:>10} {:>10} {:>10} {:>12} {:>10}\n", "rank", "begins", "ends", "ops", "waited",
             "for rank", "others'");
  for (std::size_t rank = 0; rank < result.programs.size(); ++rank) {
    const auto [whom, longest] = most_awaited(result.waits.by[rank]);
    fmt::print("{:>10}  {:>10} {:>10} {:>10} {:>10} {:>12} {:>10}\n", rank, to_text(loaded.job.ranks[rank].start),
               to_text(end_of(result.times.ranks[rank])), to_text(own_work(result.programs[rank])),
               to_text(result.waits.of(rank)),
               longest == Nanos{} ? "-" : fmt::format("{} ({:.0f} %)", whom, percent(longest, result.waits.of(rank))),
               to_text(result.waits.caused(rank)));
  }
}

void print_path(const LoadedJob& loaded, const JobResult& result) {
  fmt::print("\n{:>13}  {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}  {}\n", "critical path", "from", "to", "host",
             "ops", "starting", "moving", "before", "then");
  for (const PathPart& part : result.path.parts) {
    const PathShares& shares = part.shares;
    fmt::print("{:>13}  {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}  {}\n", fmt::format("rank {}", part.rank),
               to_text(part.begin), to_text(part.end), to_text(shares.host), to_text(shares.ops), to_text(shares.start),
               to_text(shares.collective), to_text(shares.before),
               part.left_at == RankOp::kNone
                   ? "the step ends"
                   : fmt::format("{} ({})", loaded.job.collectives[part.left_at].name, part.left_at));
  }
}

Json shares_json(const PathShares& shares) {
  return {{"host_ns", shares.host.count()},
          {"ops_ns", shares.ops.count()},
          {"start_ns", shares.start.count()},
          {"collective_ns", shares.collective.count()},
          {"before_ns", shares.before.count()}};
}

}  // namespace

void print_job(const LoadedJob& job, const std::string& path, const JobResult& result) {
  std::size_t ops = 0;
  for (const RankProgram& program : result.programs) ops += program.ops.size();
  const auto number = [](std::size_t size, std::string_view what) {
    return counted(static_cast<std::int64_t>(size), what);
  };
  fmt::print("{}: {}, {} of {}, {}\n", path, number(job.traces.size(), "rank"),
             number(job.job.collectives.size(), "collective"), number(job.job.groups.size(), "group"),
             number(ops, "op"));
  fmt::print("step        {}, {} as recorded: {:+.2f} %\n", to_text(result.times.makespan), to_text(result.recorded),
             percent(result.times.makespan - result.recorded, result.recorded));
  if (result.off)
    fmt::print("collectives end within {} of the recording, {:.3f} % of the step\n", to_text(*result.off),
               percent(*result.off, result.recorded));
  print_collectives(job, result);
  print_ranks(job, result);
  print_path(job, result);
}

std::string job_json(const LoadedJob& job, const std::string& path, const JobResult& result) {
  Json collectives = Json::array(), ranks = Json::array(), parts = Json::array();
  for (std::size_t i = 0; i < job.job.collectives.size(); ++i) {
    const JobCollective& collective = job.job.collectives[i];
    const CollectiveTimes& times = result.times.collectives[i];
    Json json{{"name", collective.name}, {"group", job.job.groups[collective.group].name}};
    if (collective.input) json["input_bytes"] = collective.input->count();
    json["begin_ns"] = times.begin.count();
    json["cost_ns"] = result.costs[i].count();
    json["end_ns"] = times.end.count();
    json["last_rank"] = times.last;
    collectives.push_back(std::move(json));
  }
  for (std::size_t rank = 0; rank < result.programs.size(); ++rank) {
    Json waited = Json::array();
    for (const Nanos wait : result.waits.by[rank]) waited.push_back(wait.count());
    ranks.push_back({{"start_ns", job.job.ranks[rank].start.count()},
                     {"end_ns", end_of(result.times.ranks[rank]).count()},
                     {"ops_ns", own_work(result.programs[rank]).count()},
                     {"waited_ns", result.waits.of(rank).count()},
                     {"waited_for_rank_ns", waited},
                     {"others_waited_ns", result.waits.caused(rank).count()},
                     {"path", shares_json(result.path.of_rank[rank])}});
  }
  for (const PathPart& part : result.path.parts) {
    Json json{{"rank", part.rank}, {"begin_ns", part.begin.count()}, {"end_ns", part.end.count()}};
    json.update(shares_json(part.shares));
    if (part.left_at != RankOp::kNone) json["then_collective"] = part.left_at;
    parts.push_back(std::move(json));
  }
  Json json{{"job", path},
            {"makespan_ns", result.times.makespan.count()},
            {"recorded_ns", result.recorded.count()},
            {"clock_residual_ns", job.job.clock_residual.count()}};
  if (result.off) json["collective_end_difference_ns"] = result.off->count();
  json["collectives"] = std::move(collectives);
  json["ranks"] = std::move(ranks);
  json["critical_path"] = std::move(parts);
  return json_text(json);
}

}  // namespace tidepool
