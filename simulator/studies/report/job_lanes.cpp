#include "simulator/studies/report/job_lanes.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kColumns = 2000;  // columns of a drawing; pauses shorter than a column are not shown

std::vector<Span> joined(std::vector<Span> spans, Nanos finest) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> out;
  for (const Span& span : spans)
    if (span.end <= span.begin)
      continue;
    else if (out.empty() || span.begin > out.back().end + finest)
      out.push_back(span);
    else
      out.back().end = std::max(out.back().end, span.end);
  return out;
}

Json flat(const std::vector<Span>& spans) {
  Json numbers = Json::array();
  for (const Span& span : spans) numbers.push_back(span.begin.count()), numbers.push_back(span.end.count());
  return numbers;
}

Json to_json(const PathPart& part) {
  return {{"rank", part.rank},
          {"begin_ns", part.begin.count()},
          {"end_ns", part.end.count()},
          {"host_ns", part.shares.host.count()},
          {"ops_ns", part.shares.ops.count()},
          {"start_ns", part.shares.start.count()},
          {"collective_ns", part.shares.collective.count()},
          {"before_ns", part.shares.before.count()},
          {"left_at", part.left_at == RankOp::kNone ? Json(nullptr) : Json(part.left_at)}};
}

}  // namespace

JobLane lane_of(const RankProgram& program, const std::vector<OpTimes>& ops,
                const std::vector<CollectiveTimes>& collectives, Nanos finest) {
  JobLane lane;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const RankOp& op = program.ops[i];
    if (op.host_wait) continue;
    if (op.collective == RankOp::kNone) {
      lane.computes.push_back({ops[i].start, ops[i].end});
      continue;
    }
    const CollectiveTimes& together = collectives[op.collective];
    lane.waits.push_back({ops[i].start, together.begin});
    lane.moves.push_back({together.begin, together.end});
  }
  for (std::vector<Span>* spans : {&lane.computes, &lane.moves, &lane.waits}) *spans = joined(*spans, finest);
  return lane;
}

JobMemory memory_of(const Trace& trace, const std::vector<OpTimes>& ops, Bytes capacity) {
  JobMemory memory;
  Bytes live;
  for (const Buffer& buffer : trace.buffers())
    if (buffer.born_before) live += buffer.size;
  std::size_t next = 0;
  const auto note = [&] {
    const Nanos now = next < ops.size() ? ops[next].start : ops.empty() ? Nanos{} : ops.back().end;
    if (live > capacity && !memory.exceeds_at) memory.exceeds_at = now;
    if (live > memory.peak) memory.peak = live, memory.peak_at = now;
  };
  note();
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kRun) {
      next = event.id + std::size_t{1};
    } else if (event.kind == EventKind::kFree) {
      live -= trace.buffer(BufferId{event.id}).size;
    } else if (event.kind == EventKind::kAlloc) {
      live += trace.buffer(BufferId{event.id}).size;
      note();
    }
  }
  return memory;
}

Json to_json(const ReportedJob& shown) {
  const JobResult& result = shown.result;
  const Nanos finest = result.times.makespan / kColumns;
  Json ranks = Json::array(), path = Json::array(), collectives = Json::array();
  std::optional<std::pair<Nanos, std::size_t>> first_out;
  for (std::size_t rank = 0; rank < shown.job.traces.size(); ++rank) {
    const std::vector<OpTimes>& ops = result.times.ranks[rank];
    const JobLane lane = lane_of(result.programs[rank], ops, result.times.collectives, finest);
    const JobMemory memory = memory_of(shown.job.traces[rank], ops, shown.capacities[rank]);
    if (memory.exceeds_at)
      first_out = std::min(first_out.value_or(std::pair{*memory.exceeds_at, rank}), {*memory.exceeds_at, rank});
    Nanos end;
    for (const OpTimes& op : ops) end = std::max(end, op.end);
    ranks.push_back({{"begin_ns", result.programs[rank].start.count()},
                     {"end_ns", end.count()},
                     {"waited_ns", result.waits.of(rank).count()},
                     {"others_waited_ns", result.waits.caused(rank).count()},
                     {"peak_bytes", memory.peak.count()},
                     {"peak_ns", memory.peak_at.count()},
                     {"capacity_bytes", shown.capacities[rank].count()},
                     {"exceeds_ns", memory.exceeds_at ? Json(memory.exceeds_at->count()) : Json(nullptr)},
                     {"computes", flat(lane.computes)},
                     {"moves", flat(lane.moves)},
                     {"waits", flat(lane.waits)}});
  }
  for (const PathPart& part : result.path.parts) path.push_back(to_json(part));
  for (const JobCollective& collective : shown.job.job.collectives) collectives.push_back(collective.name);
  return {{"name", shown.name},
          {"makespan_ns", result.times.makespan.count()},
          {"recorded_ns", result.recorded.count()},
          {"ranks", ranks},
          {"path", path},
          {"collectives", collectives},
          {"first_out", first_out ? Json(first_out->second) : Json(nullptr)}};
}

}  // namespace tidepool
