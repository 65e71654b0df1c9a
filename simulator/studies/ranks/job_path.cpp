#include "simulator/studies/ranks/job_path.hpp"

#include <algorithm>

namespace tidepool {
namespace {

/// Walks from the end of an op back to the start of the job.
class Walk {
 public:
  Walk(const LoadedJob& job, const std::vector<RankProgram>& programs, const JobTimes& times)
      : job_{job}, programs_{programs}, times_{times} {}

  JobPath run() {
    path_.of_rank.resize(programs_.size());
    find_last();
    bool ended = true;  // at the end of the op; false: at its launch by the host
    while (op_ != RankOp::kNone) ended = ended ? back_to_ready() : back_on_host();
    part_.shares.before += part_.end - part_.shares.total() - part_.begin;
    close();
    std::reverse(path_.parts.begin(), path_.parts.end());
    for (const PathPart& part : path_.parts) {
      PathShares& sum = path_.of_rank[part.rank];
      sum.host += part.shares.host;
      sum.ops += part.shares.ops;
      sum.start += part.shares.start;
      sum.collective += part.shares.collective;
      sum.before += part.shares.before;
    }
    return std::move(path_);
  }

 private:
  const RankOp& op() const { return programs_[part_.rank].ops[op_]; }
  const OpTimes& times() const { return times_.ranks[part_.rank][op_]; }

  void find_last() {
    for (std::size_t rank = 0; rank < times_.ranks.size(); ++rank)
      for (std::size_t op = 0; op < times_.ranks[rank].size(); ++op)
        if (times_.ranks[rank][op].end > part_.end || op_ == RankOp::kNone) {
          part_.rank = rank;
          part_.end = times_.ranks[rank][op].end;
          op_ = static_cast<std::uint32_t>(op);
        }
  }

  /// Goes from the op's end back to the event that the op waited for. @return  whether this event is the end of an op
  bool back_to_ready() {
    if (op().collective != RankOp::kNone) meet();
    const OpTimes& found = times();
    if (op().collective == RankOp::kNone)
      (op().host_wait ? part_.shares.host : part_.shares.ops) += found.end - found.start;
    part_.shares.start += op().lag;
    if (found.awaited == Awaited::kHost) return false;
    op_ = found.after;
    return true;
  }

  /// Continues at the rank that arrived last.
  void meet() {
    const std::uint32_t number = op().collective;
    const CollectiveTimes& collective = times_.collectives[number];
    part_.shares.collective += collective.end - collective.begin;
    const JobCollective& joined = job_.job.collectives[number];
    const std::vector<std::size_t>& ranks = job_.job.groups[joined.group].ranks;
    const auto index = std::lower_bound(ranks.begin(), ranks.end(), collective.last) - ranks.begin();
    op_ = joined.ops[static_cast<std::size_t>(index)].value();
    if (collective.last == part_.rank) return;
    part_.begin = collective.begin;
    close();
    part_ = {.rank = collective.last, .begin = {}, .end = collective.begin, .shares = {}, .left_at = number};
  }

  /// Goes back on the host, from the launch of the op to the end of the last host wait before it, or to the start.
  /// @return  whether there is such a host wait
  bool back_on_host() {
    Nanos gap = op().gap;
    while (op_ > 0) {
      part_.shares.host += gap;
      --op_;
      if (op().host_wait) return true;
      gap = std::max(op().gap, Nanos{});
    }
    part_.shares.host += gap;
    op_ = RankOp::kNone;
    return false;
  }

  void close() { path_.parts.push_back(part_); }

  const LoadedJob& job_;
  const std::vector<RankProgram>& programs_;
  const JobTimes& times_;
  JobPath path_;
  PathPart part_;
  std::uint32_t op_ = RankOp::kNone;
};

}  // namespace

JobPath critical_path_of(const LoadedJob& job, const std::vector<RankProgram>& programs, const JobTimes& times) {
  return Walk{job, programs, times}.run();
}

Nanos JobWaits::of(std::size_t rank) const {
  Nanos sum;
  for (const Nanos wait : by[rank]) sum += wait;
  return sum;
}

Nanos JobWaits::caused(std::size_t rank) const {
  Nanos sum;
  for (const std::vector<Nanos>& waits : by) sum += waits[rank];
  return sum;
}

JobWaits waits_of(const LoadedJob& job, const JobTimes& times, const std::vector<RankProgram>& programs) {
  const std::size_t ranks = job.traces.size();
  JobWaits waits{std::vector<std::vector<Nanos>>(ranks, std::vector<Nanos>(ranks))};
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (std::size_t op = 0; op < programs[rank].ops.size(); ++op) {
      const std::uint32_t number = programs[rank].ops[op].collective;
      if (number == RankOp::kNone) continue;
      const CollectiveTimes& collective = times.collectives[number];
      waits.by[rank][collective.last] += collective.begin - times.ranks[rank][op].start;
    }
  return waits;
}

}  // namespace tidepool
