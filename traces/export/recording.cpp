#include "traces/export/recording.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"

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
    for (std::size_t i = 0; i < data.events.size(); ++i) {
      for (; mark < data.marks.size() && data.marks[mark].event <= i; ++mark) pass(mark);
      step(data.events[i]);
    }
    for (; mark < data.marks.size(); ++mark) pass(mark);
    now_ += Nanos{1};
    for (const std::size_t open : open_) recording_.ranges[open].end = now_;
    if (iteration_) recording_.ranges[*iteration_].end = now_;
    return std::move(recording_);
  }

 private:
  RecordedBlock event(RecordedAction action, const Buffer& buffer) const {
    return {action,
            now_,
            buffer.address,
            buffer.size,
            buffer.device,
            buffer.stream,
            std::string{trace_.text(buffer.name)},
            std::string{trace_.text(buffer.line)}};
  }

  void step(const Event& step) {
    if (step.kind == EventKind::kRun) return run(trace_.op(OpId{step.id}));
    if (step.kind == EventKind::kForget) return;
    now_ += Nanos{1};
    at_mark_ = false;
    recording_.memory.push_back(event(step.kind == EventKind::kAlloc ? RecordedAction::kAlloc : RecordedAction::kFree,
                                      trace_.buffer(BufferId{step.id})));
  }

  void run(const Op& op) {
    RecordedOp made{std::string{trace_.text(op.name)}, op.kind, op.stream, devices_[op.stream.index()], {}, {}, {}};
    Nanos& free = free_[op.stream.index()];
    made.duration = op.duration;
    const Nanos after = at_mark_ ? now_ : now_ + Nanos{1};
    made.launch = std::max(op.launch >= Nanos{} ? op.launch : op.start >= Nanos{} ? op.start : free, after);
    made.start = op.start >= Nanos{} ? op.start : std::max(free, made.launch);
    free = made.start + made.duration;
    now_ = made.launch;
    at_mark_ = false;
    recording_.ops.push_back(std::move(made));
  }

  void pass(std::size_t index) {
    const Mark& mark = trace_.data().marks[index];
    const std::string name{trace_.text(mark.name)};
    const Nanos at = now_ + Nanos{1};
    if (mark.kind == MarkKind::kIteration) {
      if (iteration_) recording_.ranges[*iteration_].end = at;
      iteration_.reset();
      if (has_range(index)) return;
      iteration_ = recording_.ranges.size();
      recording_.ranges.push_back({iteration_name(name), at, at});
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
    now_ = at;
    at_mark_ = true;
  }

  static std::string iteration_name(const std::string& name) {
    return parse_whole(name) ? "ProfilerStep#" + name : name;
  }

  /// Whether the mark of an iteration was read from a range, which begins at the next mark: the range stands for both.
  bool has_range(std::size_t index) const {
    const std::vector<Mark>& marks = trace_.data().marks;
    if (index + 1 == marks.size()) return false;
    const Mark &iteration = marks[index], &next = marks[index + 1];
    return next.kind == MarkKind::kRangeBegin && next.event == iteration.event &&
           trace_.text(next.name) == iteration_name(std::string{trace_.text(iteration.name)});
  }

  const Trace& trace_;
  Recording recording_;
  Nanos now_{-1};                         // of the last step or mark
  bool at_mark_ = false;                  // whether that is a mark: an op may be launched at its time
  std::vector<Nanos> free_;               // by stream
  std::vector<std::uint16_t> devices_;    // by stream: as its name says, or that of the buffers allocated for it
  std::vector<std::size_t> open_;         // ranges that have not ended
  std::optional<std::size_t> iteration_;  // range of the current iteration, if only its mark tells of it
};

/// The devices of each lane's ops and buffers.
std::vector<std::set<std::int64_t>> devices_of_lanes(const Recording& recording) {
  std::vector<std::set<std::int64_t>> devices(recording.lanes.size());
  for (const RecordedOp& op : recording.ops) devices[op.stream.index()].insert(op.device);
  for (const auto* events : {&recording.existing, &recording.memory})
    for (const RecordedBlock& event : *events) devices[event.stream.index()].insert(event.device);
  return devices;
}

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

std::vector<std::int64_t> lane_numbers(const Recording& recording) {
  constexpr std::int64_t kNone = -1;
  std::vector<std::int64_t> numbers(recording.lanes.size(), kNone);
  std::vector<std::set<std::int64_t>> devices = devices_of_lanes(recording);
  std::set<std::pair<std::int64_t, std::int64_t>> named;  // device, number
  std::set<std::int64_t> taken;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string_view name = recording.lanes[i];
    const std::size_t colon = name.find(':');
    const bool bare = colon == std::string_view::npos;
    const std::optional<std::int64_t> device = bare ? 0 : parse_whole(name.substr(0, colon));
    const std::optional<std::int64_t> number = parse_whole(bare ? name : name.substr(colon + 1));
    if (!device || !number || *number < 0) continue;
    if (devices[i].empty()) devices[i].insert(*device);
    if (std::any_of(devices[i].begin(), devices[i].end(), [&](std::int64_t on) {
          return named.count({on, *number}) > 0;
        }))
      continue;
    for (const std::int64_t on : devices[i]) named.emplace(on, *number);
    numbers[i] = *number;
    taken.insert(*number);
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != kNone) continue;
    numbers[i] = static_cast<std::int64_t>(i);
    while (!taken.insert(numbers[i]).second) ++numbers[i];
  }
  return numbers;
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
