// Small jobs for tests: a trace for each rank, joined by collectives in the order of their ops.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "traces/builder.hpp"
#include "traces/job/job.hpp"

namespace tidepool::tests {

/// Joins traces in which all ranks take part in every collective: the n-th one of each rank is the job's n-th.
/// @param costs   time that each collective takes
/// @param starts  time at which each rank's trace starts
inline LoadedJob job_of(std::vector<Trace> traces, const std::vector<Nanos>& costs, const std::vector<Nanos>& starts) {
  Job job;
  job.groups.push_back({"all", {}});
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    job.groups[0].ranks.push_back(rank);
    job.ranks.push_back({"rank" + std::to_string(rank) + ".tide", traces[rank].hash(), starts[rank]});
  }
  for (std::size_t i = 0; i < costs.size(); ++i) job.collectives.push_back({.name = "all_reduce", .cost = costs[i]});
  for (const Trace& trace : traces) {
    std::size_t next = 0;
    for (std::size_t op = 0; op < trace.ops().size(); ++op)
      if (trace.ops()[op].kind == OpKind::kCollective) job.collectives[next++].ops.emplace_back(op);
  }
  return {std::move(job), std::move(traces)};
}

/// Ops one after the other on one stream; an op of 0 ns is a collective.
inline Trace rank_of(const std::vector<Nanos>& durations) {
  TraceBuilder build;
  for (const Nanos duration : durations)
    build.run({.kind = duration == Nanos{} ? OpKind::kCollective : OpKind::kKernel, .duration = duration}, {});
  return build.finish();
}

/// Ranks with a buffer, ops on two streams, launches and host waits, joined by collectives of random groups. The order
/// of the collectives is the same on all ranks.
inline LoadedJob random_job(std::uint32_t seed) {
  std::mt19937 random{seed};
  const auto draw = [&](int most) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(most + 1)); };
  const std::size_t ranks = 2 + random() % 4;
  std::vector<TraceBuilder> builders(ranks, TraceBuilder{{"0", "1"}});
  std::vector<Nanos> hosts(ranks);
  Job job;
  job.groups = {{"all", {}}, {"pair", {0, ranks - 1}}};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    builders[rank].existing({.size = Bytes{8}});
    job.groups[0].ranks.push_back(rank);
    job.ranks.push_back({"", "", Nanos{draw(50)}});
  }
  const auto add = [&](std::size_t rank, OpKind kind, std::size_t stream) {
    hosts[rank] += Nanos{draw(20)};
    builders[rank].run({.stream = StreamId{stream}, .kind = kind, .launch = hosts[rank], .duration = Nanos{draw(30)}},
                       {});
    const OpId op = builders[rank].last_op();
    if (op.index() > 2 && draw(3) == 0) builders[rank].order(OpId{op.index() - 2}, op);
    return op;
  };
  for (int i = 0; i < 12; ++i) {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      for (int k = 0; k < 4; ++k) add(rank, draw(5) == 0 ? OpKind::kHostWait : OpKind::kKernel, random() % 2);
    JobCollective collective{.name = "all_reduce", .group = random() % 2, .cost = Nanos{draw(10)}};
    for (const std::size_t rank : job.groups[collective.group].ranks)
      collective.ops.push_back(add(rank, OpKind::kCollective, 1));
    job.collectives.push_back(collective);
  }
  LoadedJob loaded{.job = std::move(job), .traces = {}};
  for (TraceBuilder& builder : builders) loaded.traces.push_back(builder.finish());
  return loaded;
}

}  // namespace tidepool::tests
