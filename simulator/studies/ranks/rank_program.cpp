#include "simulator/studies/ranks/rank_program.hpp"

#include <algorithm>
#include <cmath>

#include "traces/base/refuse.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

constexpr Nanos kNotRecorded{-1};

class Recorded {
 public:
  explicit Recorded(const Trace& trace)
      : trace_{trace}, issue_{issue_time(trace)}, stream_end_(trace.data().streams.size()) {
    orders_.resize(trace.ops().size());
    for (const Order& order : trace.data().orders) orders_[order.after.index()].push_back(order.before);
  }

  RankProgram program() {
    RankProgram program;
    program.streams = trace_.data().streams.size();
    for (std::size_t op = 0; op < trace_.ops().size(); ++op) add(OpId{op}, program);
    program.recorded_end = end_;
    return program;
  }

 private:
  void add(OpId id, RankProgram& program) {
    const Op& op = trace_.op(id);
    RankOp own{.stream = op.stream, .duration = op.duration, .host_wait = op.kind == OpKind::kHostWait};
    const Nanos launch = op.launch == kNotRecorded ? host_ : op.launch;
    own.gap = issue_ > Nanos{} ? issue_ : launch - host_;
    Nanos ready = std::max(launch, stream_end_[op.stream.index()]);
    own.first_before = static_cast<std::uint32_t>(program.before.size());
    for (const OpId before : orders_[id.index()]) {
      program.before.push_back(before.value());
      ready = std::max(ready, ends_[before.index()]);
    }
    own.last_before = static_cast<std::uint32_t>(program.before.size());
    const Nanos start = op.start == kNotRecorded ? ready : op.start;
    if (issue_ == Nanos{}) own.lag = std::max(start - ready, Nanos{});
    const Nanos end = start + op.duration;
    stream_end_[op.stream.index()] = std::max(stream_end_[op.stream.index()], end);
    host_ = own.host_wait ? end : std::max(host_, launch);
    end_ = std::max(end_, end);
    ends_.push_back(end);
    program.ops.push_back(own);
  }

  const Trace& trace_;
  const Nanos issue_;                      // not 0: the recorded launches and starts are those of a dry run
  std::vector<std::vector<OpId>> orders_;  // by op: the ops that it is ordered after
  std::vector<Nanos> ends_;                // by op
  std::vector<Nanos> stream_end_;
  Nanos host_, end_;
};

Nanos scale(Nanos time, double factor) {
  return Nanos{static_cast<std::int64_t>(std::llround(static_cast<double>(time.count()) * factor))};
}

}  // namespace

std::vector<RankProgram> rank_programs(const LoadedJob& job, const std::string& path) {
  std::vector<RankProgram> programs;
  std::vector<std::vector<std::uint32_t>> collective_of;  // by rank and op
  for (const Trace& trace : job.traces) collective_of.emplace_back(trace.ops().size(), RankOp::kNone);
  for (std::size_t i = 0; i < job.job.collectives.size(); ++i) {
    const JobCollective& collective = job.job.collectives[i];
    const std::vector<std::size_t>& ranks = job.job.groups[collective.group].ranks;
    for (std::size_t k = 0; k < ranks.size(); ++k)
      collective_of[ranks[k]][collective.ops[k].index()] = static_cast<std::uint32_t>(i);
  }
  for (std::size_t rank = 0; rank < job.traces.size(); ++rank) {
    const Trace& trace = job.traces[rank];
    RankProgram program = Recorded{trace}.program();
    program.start = job.job.ranks[rank].start;
    program.recorded_end += program.start;
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      const OpId id{op};
      program.ops[op].collective = collective_of[rank][op];
      if (trace.op(id).kind == OpKind::kCollective && program.ops[op].collective == RankOp::kNone)
        refuse("{}: rank {}: op {}, '{}', is a collective of no group; expected all to be joined", path, rank, op,
               trace.text(trace.op(id).name));
    }
    programs.push_back(std::move(program));
  }
  return programs;
}

RankProgram scaled(RankProgram program, double factor, OwnTime what) {
  for (RankOp& op : program.ops) {
    if (what != OwnTime::kOps) op.gap = scale(op.gap, factor);
    const bool of_host = op.host_wait;
    if (op.collective == RankOp::kNone && (what == OwnTime::kAll || of_host == (what == OwnTime::kHost)))
      op.duration = scale(op.duration, factor);
  }
  return program;
}

}  // namespace tidepool
