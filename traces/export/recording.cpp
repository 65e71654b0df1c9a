#include "traces/export/recording.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "traces/lines.hpp"
#include "traces/refuse.hpp"

namespace tidepool {
namespace {

class Recorder {
 public:
  explicit Recorder(const Trace& trace) : trace_{trace} {}

  Recording run() {
    const TraceData& data = trace_.data();
    recording_.lanes = data.streams;
    recording_.meta = data.meta;
    recording_.orders = data.orders;
    free_.resize(data.streams.size());
    devices_.resize(data.streams.size());
    for (const Buffer& buffer : data.buffers) devices_[buffer.stream.index()] = buffer.device;
    for (std::size_t i = 0; i < devices_.size(); ++i)  // a stream named "1:7" is on device 1
      if (const std::size_t colon = data.streams[i].find(':'); colon != std::string::npos)
        if (const auto device = parse_whole(data.streams[i].substr(0, colon));
            device && *device >= 0 && *device <= 0xffff)
          devices_[i] = static_cast<std::uint16_t>(*device);
    for (const Buffer& buffer : data.buffers)
      if (buffer.born_before) recording_.existing.push_back(event(RecordedAction::kAlloc, buffer));
    std::size_t mark = 0;
    for (std::size_t i = 0; i < data.steps.size(); ++i) {
      for (; mark < data.marks.size() && data.marks[mark].step <= i; ++mark) pass(data.marks[mark]);
      step(data.steps[i]);
    }
    for (; mark < data.marks.size(); ++mark) pass(data.marks[mark]);
    now_ += Nanos{1};
    for (const std::size_t open : open_) recording_.ranges[open].end = now_;
    if (iteration_) recording_.ranges[*iteration_].end = now_;
    return std::move(recording_);
  }

 private:
  RecordedBlock event(RecordedAction action, const Buffer& buffer) const {
    return {
        action, now_, buffer.address, buffer.size, buffer.device, buffer.stream, std::string{trace_.text(buffer.name)}};
  }

  void step(const Step& step) {
    if (step.kind == StepKind::kRun) return run(trace_.op(OpId{step.id}));
    if (step.kind == StepKind::kForget) return;
    now_ += Nanos{1};
    recording_.memory.push_back(event(step.kind == StepKind::kAlloc ? RecordedAction::kAlloc : RecordedAction::kFree,
                                      trace_.buffer(BufferId{step.id})));
  }

  void run(const Op& op) {
    RecordedOp made{std::string{trace_.text(op.name)}, op.kind, op.stream, devices_[op.stream.index()], {}, {}, {}};
    Nanos& free = free_[op.stream.index()];
    made.duration = op.duration;
    const Nanos after = now_ + Nanos{1};
    made.launch = std::max(op.launch >= Nanos{} ? op.launch : op.start >= Nanos{} ? op.start : free, after);
    made.start = op.start >= Nanos{} ? op.start : std::max(free, made.launch);
    free = made.start + made.duration;
    now_ = made.launch;
    recording_.ops.push_back(std::move(made));
  }

  void pass(const Mark& mark) {
    const std::string name{trace_.text(mark.name)};
    const Nanos at = now_ + Nanos{1};
    if (mark.kind == MarkKind::kIteration) {
      if (iteration_) recording_.ranges[*iteration_].end = at;
      iteration_ = recording_.ranges.size();
      recording_.ranges.push_back({is_number(name) ? "ProfilerStep#" + name : name, at, at});
    } else if (mark.kind == MarkKind::kRangeBegin) {
      open_.push_back(recording_.ranges.size());
      recording_.ranges.push_back({name, at, at});
    } else if (mark.kind == MarkKind::kRangeEnd) {
      const auto same = std::find_if(open_.rbegin(), open_.rend(),
                                     [&](std::size_t range) { return recording_.ranges[range].name == name; });
      if (same == open_.rend()) return;
      recording_.ranges[*same].end = at;
      open_.erase(std::next(same).base());
    }
  }

  static bool is_number(const std::string& name) { return parse_whole(name).has_value(); }

  const Trace& trace_;
  Recording recording_;
  Nanos now_{-1};
  std::vector<Nanos> free_;               // by stream
  std::vector<std::uint16_t> devices_;    // by stream: as its name says, or that of the buffers allocated for it
  std::vector<std::size_t> open_;         // ranges that have not ended
  std::optional<std::size_t> iteration_;  // range of the current iteration
};

}  // namespace

Recording recording_of(const Trace& trace) { return Recorder{trace}.run(); }

std::vector<RecordedBlock> live_at_end(const Recording& recording) {
  std::map<std::pair<std::uint16_t, std::int64_t>, RecordedBlock> live;
  for (const RecordedBlock& block : recording.existing) live.insert_or_assign({block.device, block.address}, block);
  for (const RecordedBlock& event : recording.memory) {
    if (event.action == RecordedAction::kAlloc) live.insert_or_assign({event.device, event.address}, event);
    if (event.action == RecordedAction::kFree) live.erase({event.device, event.address});
  }
  std::vector<RecordedBlock> blocks;
  for (auto& [place, block] : live) blocks.push_back(std::move(block));
  return blocks;
}

std::int64_t lane_number(const Recording& recording, StreamId lane) {
  const std::string_view name = recording.lanes[lane.index()];
  const std::size_t colon = name.find(':');
  const std::optional<std::int64_t> number =
      parse_whole(colon == std::string_view::npos ? name : name.substr(colon + 1));
  return number && *number >= 0 ? *number : static_cast<std::int64_t>(lane.index());
}

void require_addresses(const Recording& recording) {
  std::size_t unplaced = 0;
  for (const auto* events : {&recording.existing, &recording.memory})
    for (const RecordedBlock& event : *events) unplaced += event.address < 0;
  if (unplaced > 0)
    refuse(
        "{} of the allocations and frees {} no address, which this form needs; run simulate --plan-out with a pool, "
        "and "
        "export the plan",
        unplaced, unplaced == 1 ? "has" : "have");
}

}  // namespace tidepool
