#include "traces/job/like_ranks.hpp"

#include <algorithm>

namespace tidepool {
namespace {

template <class Range, class Same>
bool all_same(const Range& a, const Range& b, const Same& same) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

/// Whether both have equal counts of losses. Residuals of clock fits may differ, since each process has its own clock.
bool lost_the_same(Losses one, const Losses& other) {
  one.clock_residual_ns = other.clock_residual_ns;
  return one == other;
}

/// By collective: the rank's op in it; none if the rank does not take part.
std::vector<OpId> collectives_of(const Job& job, std::size_t rank) {
  std::vector<OpId> ops(job.collectives.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::vector<std::size_t>& ranks = job.groups[job.collectives[i].group].ranks;
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    if (found != ranks.end()) ops[i] = job.collectives[i].ops[static_cast<std::size_t>(found - ranks.begin())];
  }
  return ops;
}

}  // namespace

bool do_the_same(const Trace& a, const Trace& b) {
  const TraceData &x = a.data(), &y = b.data();
  const auto same_op = [&](const Op& one, const Op& other) {
    const bool timed = one.kind != OpKind::kHostWait && one.kind != OpKind::kCollective;
    return a.text(one.name) == b.text(other.name) && a.text(one.module) == b.text(other.module) &&
           one.kind == other.kind && one.stream == other.stream && one.phase == other.phase &&
           one.random == other.random && one.first_use == other.first_use && one.last_use == other.last_use &&
           (!timed || one.duration == other.duration);
  };
  const auto same_buffer = [&](const Buffer& one, const Buffer& other) {
    return one.size == other.size && a.text(one.name) == b.text(other.name) && one.stream == other.stream &&
           one.kind == other.kind && one.born_before == other.born_before && one.outlives == other.outlives;
  };
  const auto same_mark = [&](const Mark& one, const Mark& other) {
    return one.event == other.event && one.kind == other.kind && a.text(one.name) == b.text(other.name);
  };
  return x.streams.size() == y.streams.size() && x.events == y.events && x.uses == y.uses && x.versions == y.versions &&
         x.orders == y.orders && x.outputs == y.outputs && lost_the_same(x.losses, y.losses) &&
         all_same(x.ops, y.ops, same_op) && all_same(x.buffers, y.buffers, same_buffer) &&
         all_same(x.marks, y.marks, same_mark);
}

std::vector<std::size_t> share_traces(LoadedJob& job) {
  std::vector<std::size_t> first_of;
  std::vector<std::vector<OpId>> collectives;
  for (std::size_t rank = 0; rank < job.traces.size(); ++rank) {
    collectives.push_back(collectives_of(job.job, rank));
    std::size_t first = 0;
    while (first < rank && !(first_of[first] == first && collectives[first] == collectives[rank] &&
                             do_the_same(job.traces[first], job.traces[rank])))
      ++first;
    first_of.push_back(first);
    if (first != rank) job.traces[rank] = job.traces[first];
  }
  return first_of;
}

}  // namespace tidepool
