// Jobs made by hand: a trace for each rank, joined by the collectives in the order of their ops.
#pragma once

#include <string>
#include <vector>

#include "traces/builder.hpp"
#include "traces/job/job.hpp"

namespace tidepool::tests {

/// Joins traces whose collectives are all of all ranks: the n-th on each is the n-th of the job. `costs` by collective.
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

/// Ops one after the other on one stream; those of 0 ns are collectives.
inline Trace rank_of(const std::vector<Nanos>& durations) {
  TraceBuilder build;
  for (const Nanos duration : durations)
    build.run({.kind = duration == Nanos{} ? OpKind::kCollective : OpKind::kKernel, .duration = duration}, {});
  return build.finish();
}

}  // namespace tidepool::tests
