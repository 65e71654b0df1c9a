#include "simulator/studies/export/plan_recording.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/engine/checker.hpp"
#include "simulator/engine/pools/caching_pool.hpp"
#include "simulator/engine/timeline.hpp"
#include "simulator/ordered_step.hpp"
#include "traces/base/error.hpp"
#include "traces/export/exporter.hpp"

namespace tidepool {
namespace {

class PlanRecorder {
 public:
  PlanRecorder(const Trace& trace, const PlanFile& file)
      : trace_{trace},
        file_{file},
        checker_{trace, file.spec},
        timeline_{trace, file.spec.machine, file.spec.assume, states_, file.spec.capacity},
        places_(trace.versions().size()) {
    recording_.lanes = trace.data().streams;
    h2d_ = StreamId{recording_.lanes.size()};
    d2h_ = StreamId{recording_.lanes.size() + 1};
    recording_.lanes.insert(recording_.lanes.end(), {"h2d", "d2h"});
    recording_.meta = {{"source", "simulated"}, {"pool", file.spec.pool.text}, {"policy", file.spec.policy.text},
                       {"time", "simulated"},   {"trace", file.trace_hash},    {"device", file.spec.machine.name}};
    const Spec& pool = file.spec.pool;
    const bool expandable = pool.name == "pytorch-expandable";
    if (!expandable && pool.name != "pytorch") return;
    recording_.meta["allocator_conf"] = caching_conf({pool.name, caching_options(), pool.options}, expandable);
  }

  Recording run() {
    iteration_begins(0);
    for (const Action& action : file_.plan.actions) {
      checker_.check(action);
      now_ = std::max(now_, timeline_.now(action.before));
      pieces_ = {timeline_.pieces(Direction::kOut), timeline_.pieces(Direction::kIn)};
      timeline_.apply(action);
      record(action);
    }
    checker_.finish();
    time_disturbed_copies();
    recording_.ranges.back().end = std::max(timeline_.totals().makespan, now_);
    return std::move(recording_);
  }

 private:
  void record(const Action& action) {
    switch (action.verb) {
      case Verb::kReserve:
        return segment(action, action.subject == 0 ? RecordedAction::kSegmentAlloc : RecordedAction::kSegmentMap);
      case Verb::kRelease:
        return segment(action, action.subject == 0 ? RecordedAction::kSegmentFree : RecordedAction::kSegmentUnmap);
      case Verb::kScratch:
        scratch_.push_back({{action.offset, action.size}, VersionId{action.subject}});
        return memory(RecordedAction::kAlloc, scratch_.back().place, scratch_.back().version);
      case Verb::kRun:
        return run(OpId{action.subject});
      case Verb::kNext:
        rename_outliving();
        sync_all();
        return iteration_begins(action.subject);
      case Verb::kSwapIn:
        sync(VersionId{action.subject});
        return copy(VersionId{action.subject}, Direction::kIn);
      case Verb::kSwapOut:
        return copy(VersionId{action.subject}, Direction::kOut);
      case Verb::kAlloc:
      case Verb::kFree:
      case Verb::kDrop:
        return sync(VersionId{action.subject});
      case Verb::kMap:
      case Verb::kUnmap:
      case Verb::kCopy:
      case Verb::kAwait:
        return;
    }
  }

  struct Place {
    Bytes offset, size;
    bool operator==(const Place&) const = default;
  };

  struct Scratch {
    Place place;
    VersionId version;
  };

  void run(OpId id) {
    const Op& op = trace_.op(id);
    const Nanos end = timeline_.done(op.stream);
    recording_.ops.push_back(
        {std::string{trace_.text(op.name)}, op.kind, op.stream, 0, issued(), end - op.duration, op.duration});
    for (const Scratch& scratch : std::exchange(scratch_, {}))
      memory(RecordedAction::kFree, scratch.place, scratch.version);
    // An update in place takes over the place of the old version: nothing is allocated or freed.
    for (const VersionId made : trace_.made(id)) {
      const VersionId parent = trace_.version(made).parent;
      if (parent.valid() && places_[parent.index()] && !places_[made.index()] &&
          place_now(made) == places_[parent.index()])
        places_[made.index()] = std::exchange(places_[parent.index()], std::nullopt);
      if (parent.valid()) sync(parent);
      sync(made);
    }
  }

  void copy(VersionId v, Direction direction) {
    const bool in = direction == Direction::kIn;
    const VersionState& state = states_[v.index()];
    const Machine& machine = file_.spec.machine;
    const Link& link =
        state.in_storage ? (in ? machine.storage.read : machine.storage.write) : (in ? machine.h2d : machine.d2h);
    const Nanos time = link.time(trace_.size(v)), launch = issued();
    const Nanos end = in ? state.ready : state.host_ready, start = std::max(end - time, launch);
    const std::uint32_t last = timeline_.pieces(direction), before = in ? pieces_.in : pieces_.out;
    if (last > before) disturbed_.push_back({recording_.ops.size(), direction, before + 1, last});
    recording_.ops.push_back({in ? "memcpy HtoD" : "memcpy DtoH", OpKind::kCopy, in ? h2d_ : d2h_, 0, launch, start,
                              std::max(end, start) - start});
  }

  /// Sets the times of copies that other copies slow down. Call it when all copies have been issued.
  void time_disturbed_copies() {
    for (const DisturbedCopy& copy : disturbed_) {
      RecordedOp& op = recording_.ops[copy.op];
      op.start = std::max(timeline_.piece_span(copy.direction, copy.first).first, op.launch);
      op.duration = std::max(timeline_.piece_span(copy.direction, copy.last).second, op.start) - op.start;
    }
  }

  /// The time at which the host issues the next command: at least 1 ns after the command before it.
  Nanos issued() {
    now_ += Nanos{1};
    return now_;
  }

  std::optional<Place> place_now(VersionId v) const {
    const VersionState& state = states_[v.index()];
    return state.placed ? std::optional{Place{state.offset, state.held}} : std::nullopt;
  }

  /// Records the change of a version's place since the last call.
  void sync(VersionId v) {
    const std::optional<Place> now = place_now(v);
    std::optional<Place>& before = places_[v.index()];
    if (now == before) return;
    if (before) memory(RecordedAction::kFree, *before, v);
    if (now) memory(RecordedAction::kAlloc, *now, v);
    before = now;
  }

  /// At the end of the step, gives the place of a buffer that outlives the step to the buffer's first version.
  void rename_outliving() {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const VersionId before = trace_.first_version(trace_.version(VersionId{i}).buffer);
      if (places_[i] && !place_now(VersionId{i}) && place_now(before) == places_[i])
        places_[before.index()] = *std::exchange(places_[i], std::nullopt);
    }
  }

  void sync_all() {
    // Frees first: a new place may overlap one that was freed.
    for (std::size_t i = 0; i < places_.size(); ++i)
      if (places_[i] && place_now(VersionId{i}) != places_[i]) {
        memory(RecordedAction::kFree, *places_[i], VersionId{i});
        places_[i].reset();
      }
    for (std::size_t i = 0; i < places_.size(); ++i) sync(VersionId{i});
  }

  /// Records an allocation or free with the size of the buffer; the place may be larger.
  void memory(RecordedAction action, const Place& place, VersionId v) {
    const Buffer& buffer = trace_.buffer(trace_.version(v).buffer);
    recording_.memory.push_back({action, now_, place.offset == kNoAddress ? -1 : kSimulatedBase + place.offset.count(),
                                 trace_.size(v), 0, buffer.stream, std::string{trace_.text(buffer.name)},
                                 std::string{trace_.text(buffer.line)}});
    if (action != RecordedAction::kAlloc) return;
    for (const std::size_t segment : std::exchange(unclaimed_, {})) {
      recording_.memory[segment].stream = buffer.stream;
      reserved_for_[Bytes{recording_.memory[segment].address - kSimulatedBase}] = buffer.stream;
    }
  }

  /// Memory that is reserved is for the stream of the request that follows; memory that is given back was for the
  /// stream of the segment or pages at its address.
  void segment(const Action& action, RecordedAction kind) {
    StreamId stream{0};
    if (action.verb == Verb::kReserve)
      unclaimed_.push_back(recording_.memory.size());
    else if (const auto above = reserved_for_.upper_bound(action.offset); above != reserved_for_.begin())
      stream = std::prev(above)->second;
    recording_.memory.push_back({kind, now_, kSimulatedBase + action.offset.count(), action.size, 0, stream, "", ""});
  }

  /// Begins an iteration 1 ns after what is before it and 1 ns before what follows.
  void iteration_begins(std::uint32_t number) {
    const Nanos at = issued();
    if (!recording_.ranges.empty()) recording_.ranges.back().end = at;
    recording_.ranges.push_back({"ProfilerStep#" + std::to_string(number), at, at});
    issued();
  }

  const Trace& trace_;
  const PlanFile& file_;
  Checker checker_;
  std::vector<VersionState> states_;
  Timeline timeline_;
  std::vector<std::optional<Place>> places_;  // by version: the last recorded place
  std::vector<Scratch> scratch_;              // scratch places of the next run
  std::map<Bytes, StreamId> reserved_for_;    // by address of a segment or pages: the stream that they are for
  std::vector<std::size_t> unclaimed_;        // segments and pages, as indices in the recording, of the next request
  struct DisturbedCopy {
    std::size_t op;  // index in the recording
    Direction direction;
    std::uint32_t first, last;  // pieces on the link
  };
  std::vector<DisturbedCopy> disturbed_;
  struct {
    std::uint32_t out = 0, in = 0;
  } pieces_;  // number of pieces that each direction of the link had before the current action
  StreamId h2d_, d2h_;
  Nanos now_{-1};  // of the last command; the first iteration begins at 0
  Recording recording_;
};

Recording read_plan_recording(const Input& input, const Trace& trace) {
  const PlanFile file = parse_plan(input, &trace);
  try {
    return recording_of(trace, file);
  } catch (const PlanError& error) {
    throw InputError{input.path() + ": " + error.what()};
  }
}

const RegisterRecordingSource kPlans{
    {.sniff = [](std::string_view head) { return head.starts_with("{\"tidepool_plan\""); },
     .read = read_plan_recording}};

}  // namespace

Recording recording_of(const Trace& trace, const PlanFile& file) {
  const PlannedStep step{trace, file.plan};
  return PlanRecorder{step.trace(), file}.run();
}

}  // namespace tidepool
