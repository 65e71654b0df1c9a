#include "simulator/studies/ranks/rank_trace.hpp"

#include <algorithm>

namespace tidepool {

RankTrace::RankTrace(const Trace& trace, const RankProgram& program, const std::vector<OpTimes>& times)
    : data_{trace.data()} {
  std::vector<Nanos> stream_end(program.streams, program.start);
  std::vector<bool> after_wait(program.streams, true);  // the stream is ordered after the host's last wait already
  std::uint32_t wait = RankOp::kNone;
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const RankOp& op = program.ops[i];
    const std::size_t stream = op.stream.index();
    Nanos ready = stream_end[stream];
    for (const std::uint32_t before : program.ordered_after(op)) ready = std::max(ready, times[before].end);
    if (!after_wait[stream] && times[wait].end <= times[i].launch) {  // else another thread launched the op
      data_.orders.push_back({OpId{wait}, OpId{i}});
      ready = std::max(ready, times[wait].end);
      after_wait[stream] = true;
    }
    const bool meets = op.collective != RankOp::kNone;
    data_.ops[i].duration = (meets ? times[i].start : times[i].end) - ready;
    data_.ops[i].start = data_.ops[i].launch = Nanos{-1};
    if (meets) meetings_.push_back({OpId{i}, op.collective});
    stream_end[stream] = times[i].end;
    if (!op.host_wait) continue;
    wait = i;
    std::fill(after_wait.begin(), after_wait.end(), false);
    after_wait[stream] = true;
  }
  std::stable_sort(data_.orders.begin(), data_.orders.end(),
                   [](const Order& a, const Order& b) { return a.after.index() < b.after.index(); });
}

void RankTrace::run_collectives_once() {
  for (const Meeting& meeting : meetings_) data_.ops[meeting.op.index()].kind = OpKind::kSource;
}

Trace RankTrace::with(const std::vector<Nanos>& moving) const {
  TraceData data = data_;
  for (std::size_t i = 0; i < meetings_.size(); ++i) data.ops[meetings_[i].op.index()].duration += moving[i];
  return Trace{std::move(data)};
}

}  // namespace tidepool
