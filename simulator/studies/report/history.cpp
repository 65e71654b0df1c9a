#include "simulator/studies/report/history.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <numeric>
#include <unordered_map>

#include "simulator/engine/boundary.hpp"
#include "simulator/engine/exposed_copies.hpp"
#include "simulator/engine/timeline.hpp"

namespace tidepool {

namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{};

/// Runs a timeline and records each run, copy and stay.
class Historian {
 public:
  Historian(const Trace& trace, const RunSpec& spec)
      : trace_{trace},
        spec_{spec},
        timeline_{trace, spec.machine, spec.assume, states_, spec.capacity},
        stay_of_(trace.versions().size(), kNone),
        made_before_(trace.versions().size()),
        ran_(trace.ops().size()) {
    clock_ = out_.begin = timeline_.now({});
    out_.counted =
        std::all_of(trace.ops().begin(), trace.ops().end(), [](const Op& op) { return op.duration == Nanos{}; });
  }

  /// Makes room for the records of all actions.
  void reserve(const std::vector<Action>& actions);
  void apply(const Action& action);
  History finish(int cycle);

 private:
  struct LinkPieces {  // the pieces of out_.copies[copy] on its link
    std::size_t copy;
    std::uint32_t first, last;
  };

  bool counts(const Action& action) const;
  void arrive(VersionId v, const Action& action, Arrival arrival);
  void leave(VersionId v, const Action& action, Leaving leaving);
  void end_stay(std::uint32_t stay, const Action& action, Leaving leaving);
  void change(BufferId buffer, std::int64_t sign);
  void run(const Action& action);
  void copy(const Action& action);
  void segment(const Action& action);
  void open_segment(const ReservedSegment& segment);
  void release(Bytes from, Bytes to);
  void next_iteration(const Action& action);

  const Trace& trace_;
  const RunSpec& spec_;
  std::vector<VersionState> states_;
  Timeline timeline_;
  History out_;
  Nanos clock_;
  MemoryCurve memory_;
  std::vector<std::uint32_t> stay_of_;   // by version, while it has a place
  std::vector<std::uint32_t> scratch_;   // stays that end with the next run
  std::vector<std::uint32_t> evicted_;   // stays that were evicted since the last run and the last new place
  std::vector<bool> made_before_, ran_;  // by version: it had a place before; by op: it has run
  std::vector<LinkPieces> pieces_;
  std::map<Bytes, std::size_t> open_segments_;  // first address -> number in out_.segments
  std::vector<Totals> totals_;                  // totals at the end of each previous iteration
};

/// Whether an action counts as an event in a trace without durations: runs, frees and allocs do, but not the allocs of
/// content from before the step.
bool Historian::counts(const Action& action) const {
  if (action.verb != Verb::kAlloc) return action.verb == Verb::kRun || action.verb == Verb::kFree;
  const Version& version = trace_.version(VersionId{action.subject});
  return version.kind != VersionKind::kInitial || !trace_.buffer(version.buffer).born_before;
}

void Historian::reserve(const std::vector<Action>& actions) {
  const auto count = [&](std::initializer_list<Verb> verbs) {
    return static_cast<std::size_t>(std::ranges::count_if(
        actions, [&](const Action& action) { return std::ranges::find(verbs, action.verb) != verbs.end(); }));
  };
  out_.stays.reserve(count({Verb::kAlloc, Verb::kScratch, Verb::kSwapIn}));
  memory_.reserve(count({Verb::kAlloc, Verb::kFree}));
}

void Historian::apply(const Action& action) {
  clock_ = out_.counted ? clock_ + Nanos{counts(action) ? 1 : 0} : std::max(clock_, timeline_.now(action.before));
  const VersionId v{action.subject};
  switch (action.verb) {
    case Verb::kAlloc: {
      const bool initial = trace_.version(v).kind == VersionKind::kInitial;
      const bool before = initial && trace_.buffer(trace_.version(v).buffer).born_before;
      timeline_.apply(action);
      arrive(v, action,
             before                    ? Arrival::kBefore
             : made_before_[v.index()] ? Arrival::kRecomputed
                                       : Arrival::kAllocated);
      break;
    }
    case Verb::kScratch:
      timeline_.apply(action);
      arrive(v, action, Arrival::kScratch);
      break;
    case Verb::kFree:
    case Verb::kDrop:
      leave(v, action, action.verb == Verb::kFree ? Leaving::kFreed : Leaving::kEvicted);
      timeline_.apply(action);
      break;
    case Verb::kRun:
      run(action);
      break;
    case Verb::kSwapOut:
    case Verb::kSwapIn:
      copy(action);
      break;
    case Verb::kReserve:
    case Verb::kRelease:
    case Verb::kMap:
    case Verb::kUnmap:
      segment(action);
      break;
    case Verb::kNext:
      next_iteration(action);
      break;
    case Verb::kCopy:
    case Verb::kAwait:
      timeline_.apply(action);
      break;
  }
}

void Historian::arrive(VersionId v, const Action& action, Arrival arrival) {
  const auto stay = static_cast<std::uint32_t>(out_.stays.size());
  const BufferId buffer = trace_.version(v).buffer;
  out_.stays.push_back({.buffer = buffer,
                        .offset = action.offset,
                        .held = action.size,
                        .begin = clock_,
                        .end = clock_,
                        .arrival = arrival,
                        .leaving = Leaving::kStays,
                        .arrived_before = action.before,
                        .left_before = {},
                        .room_for = {}});
  if (arrival == Arrival::kScratch) {
    scratch_.push_back(stay);
  } else {
    stay_of_[v.index()] = stay;
    made_before_[v.index()] = true;
  }
  for (const std::uint32_t gone : evicted_) out_.stays[gone].room_for = buffer;
  evicted_.clear();
  change(buffer, 1);
}

/// Adds the size of a buffer to the resident bytes, or subtracts it.
void Historian::change(BufferId buffer, std::int64_t sign) {
  memory_.change(clock_, static_cast<std::size_t>(trace_.buffer(buffer).kind), trace_.buffer(buffer).size * sign);
}

void Historian::end_stay(std::uint32_t stay, const Action& action, Leaving leaving) {
  Stay& ended = out_.stays[stay];
  ended.end = clock_;
  ended.leaving = leaving;
  ended.left_before = action.before;
  change(ended.buffer, -1);
}

void Historian::leave(VersionId v, const Action& action, Leaving leaving) {
  const std::uint32_t stay = std::exchange(stay_of_[v.index()], kNone);
  if (stay == kNone) return;  // freed while it was not resident
  end_stay(stay, action, leaving);
  if (leaving == Leaving::kEvicted) evicted_.push_back(stay);
}

void Historian::run(const Action& action) {
  const OpId id{action.subject};
  const StreamId stream = trace_.op(id).stream;
  const Nanos before = timeline_.done(stream);
  const Stall stall = timeline_.stall();
  timeline_.apply(action);
  const Nanos waited = timeline_.stall().compute - stall.compute, end = timeline_.done(stream);
  Cause cause = waited > Nanos{} ? Cause::kOrder : Cause::kNothing;
  if (timeline_.stall().h2d > stall.h2d) cause = Cause::kCopyIn;
  if (timeline_.stall().d2h > stall.d2h) cause = Cause::kCopyOut;
  if (out_.counted)
    out_.runs.push_back({id, stream, clock_, clock_ + Nanos{1}, {}, Cause::kNothing, ran_[id.index()]});
  else
    out_.runs.push_back({id, stream, before + waited, end, waited, cause, ran_[id.index()]});
  ran_[id.index()] = true;
  if (!out_.counted && action.before.valid()) clock_ = std::max(clock_, timeline_.now(action.before));
  for (const VersionId made : trace_.made(id)) {
    const VersionId parent = trace_.version(made).parent;
    if (!parent.valid() || stay_of_[parent.index()] == kNone || states_[parent.index()].placed) continue;
    if (stay_of_[made.index()] == kNone)
      stay_of_[made.index()] = std::exchange(stay_of_[parent.index()], kNone);  // the new version took over the place
    else
      leave(parent, action, Leaving::kFreed);
    made_before_[made.index()] = true;
  }
  for (const std::uint32_t stay : scratch_) end_stay(stay, action, Leaving::kFreed);
  scratch_.clear();
  evicted_.clear();
}

void Historian::copy(const Action& action) {
  const VersionId v{action.subject};
  const bool out = action.verb == Verb::kSwapOut;
  const Direction direction = out ? Direction::kOut : Direction::kIn;
  const std::uint32_t before = timeline_.pieces(direction);
  const Nanos issued = timeline_.now(action.before);
  timeline_.apply(action);
  const std::uint32_t after = timeline_.pieces(direction);
  const VersionState& state = states_[v.index()];
  const Machine& machine = spec_.machine;
  CopySpan span{v, direction, state.in_storage, action.before, issued, {}, out ? state.host_ready : state.ready};
  const Link& link =
      state.in_storage ? (out ? machine.storage.write : machine.storage.read) : (out ? machine.d2h : machine.h2d);
  span.begin = span.end - link.time(trace_.size(v));
  if (out_.counted)
    span.issued = span.begin = span.end = clock_;
  else if (after > before)
    pieces_.push_back({out_.copies.size(), before + 1, after});
  out_.copies.push_back(span);
  if (!out) arrive(v, action, Arrival::kCopiedIn);
}

void Historian::segment(const Action& action) {
  const Nanos memory = timeline_.stall().memory;
  timeline_.apply(action);
  const Nanos cost = timeline_.stall().memory - memory, now = timeline_.now(action.before);
  if (cost > Nanos{} && !out_.counted)
    out_.runs.push_back({.op = {},
                         .stream = action.before.valid() ? trace_.op(action.before).stream : StreamId{0},
                         .begin = now,
                         .end = now,
                         .waited = cost,
                         .cause = Cause::kAllocator,
                         .again = false});
  if (action.verb == Verb::kReserve) {
    open_segment({action.offset, action.size, clock_, clock_});
  } else if (action.verb == Verb::kRelease) {
    release(action.offset, action.offset + action.size);
  }
}

void Historian::open_segment(const ReservedSegment& segment) {
  open_segments_[segment.offset] = out_.segments.size();
  out_.segments.push_back(segment);
}

/// Ends the reserved segments in an address range. The range may contain several segments, or parts of segments: a
/// segment that extends beyond the range is divided.
void Historian::release(Bytes from, Bytes to) {
  auto next = open_segments_.lower_bound(from);
  if (next != open_segments_.begin()) {
    const ReservedSegment& before = out_.segments[std::prev(next)->second];
    if (before.offset + before.size > from) --next;
  }
  while (next != open_segments_.end() && next->first < to) {
    ReservedSegment& released = out_.segments[next->second];
    const ReservedSegment whole = released;
    released.offset = std::max(whole.offset, from);
    released.size = std::min(whole.offset + whole.size, to) - released.offset;
    released.end = clock_;
    next = open_segments_.erase(next);
    if (whole.offset < from) open_segment({whole.offset, from - whole.offset, whole.begin, whole.end});
    if (whole.offset + whole.size > to) open_segment({to, whole.offset + whole.size - to, whole.begin, whole.end});
  }
}

void Historian::next_iteration(const Action& action) {
  std::vector<std::uint32_t> carried(trace_.buffers().size(), kNone);
  for (std::size_t i = 0; i < stay_of_.size(); ++i) {
    const BufferId buffer = trace_.versions()[i].buffer;
    const std::uint32_t stay = std::exchange(stay_of_[i], kNone);
    if (stay == kNone) continue;
    if (trace_.buffer(buffer).born_before && trace_.buffer(buffer).outlives)
      carried[buffer.index()] = stay;
    else
      end_stay(stay, action, Leaving::kFreed);
  }
  totals_.push_back(timeline_.totals());
  timeline_.apply(action);
  if (!out_.counted) clock_ = std::max(clock_, timeline_.now({}));
  out_.iterations.push_back(clock_);
  std::fill(made_before_.begin(), made_before_.end(), false);
  std::fill(ran_.begin(), ran_.end(), false);
  for (std::size_t i = 0; i < carried.size(); ++i)
    if (carried[i] != kNone) stay_of_[trace_.first_version(BufferId{i}).index()] = carried[i];
  evicted_.clear();
}

History Historian::finish(int cycle) {
  totals_.push_back(timeline_.totals());
  out_.totals = mean_of_last(totals_, std::clamp(cycle, 1, static_cast<int>(totals_.size())));
  for (const auto& [copy, first, last] : pieces_) {
    CopySpan& span = out_.copies[copy];
    span.begin = timeline_.piece_span(span.direction, first).first;
    span.end = timeline_.piece_span(span.direction, last).second;
  }
  out_.end = clock_ + Nanos{out_.counted ? 1 : 0};
  for (const RunSpan& span : out_.runs) out_.end = std::max(out_.end, span.end);
  for (const CopySpan& span : out_.copies) out_.end = std::max(out_.end, span.end);
  for (Stay& stay : out_.stays)
    if (stay.leaving == Leaving::kStays) stay.end = out_.end;
  for (const auto& [offset, segment] : open_segments_) out_.segments[segment].end = out_.end;
  out_.memory = memory_.finish();
  std::ranges::stable_sort(out_.segments, {}, &ReservedSegment::begin);
  return std::move(out_);
}

}  // namespace

History history_of(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  Historian historian{trace, spec};
  historian.reserve(plan.actions);
  for (const Action& action : plan.actions) historian.apply(action);
  History history = historian.finish(plan.cycle);
  ExposedCopies exposed = exposed_copies(trace, spec, plan);
  history.exposed_in = std::move(exposed.in);
  history.exposed_out = std::move(exposed.out);
  return history;
}

void MemoryCurve::change(Nanos time, std::size_t kind, Bytes bytes) {
  now_.held[kind] += bytes;
  if (points_.empty() || now_.time != time) points_now_ = 0;
  now_.time = time;
  if (points_now_ == 2) {
    MemoryPoint& largest = points_[points_.size() - 2];
    if (points_.back().sum() > largest.sum()) largest = points_.back();
    points_.back() = now_;
    return;
  }
  if (points_now_ == 1 && points_.back().sum() <= now_.sum()) {
    points_.back() = now_;
    return;
  }
  points_.push_back(now_);
  ++points_now_;
}

Bytes MemoryPoint::sum() const { return std::accumulate(held.begin(), held.end(), Bytes{}); }

History last_iterations(History history, int iterations) {
  const auto wanted = static_cast<std::size_t>(iterations);
  if (history.iterations.size() < wanted) return history;
  const Nanos begin = history.iterations[history.iterations.size() - wanted];
  history.iterations.erase(history.iterations.begin(), history.iterations.end() - (iterations - 1));
  const auto since = [&](Nanos& time) { time = std::max(time - begin, Nanos{}); };
  std::erase_if(history.runs, [&](const RunSpan& run) { return run.begin < begin; });
  std::erase_if(history.copies, [&](const CopySpan& copy) { return copy.end <= begin; });
  std::erase_if(history.stays, [&](const Stay& stay) { return stay.end <= begin && stay.leaving != Leaving::kStays; });
  std::erase_if(history.segments, [&](const ReservedSegment& segment) { return segment.end <= begin; });
  // The last change at or before `begin` tells the state at `begin`.
  auto first = std::upper_bound(history.memory.begin(), history.memory.end(), begin,
                                [](Nanos time, const MemoryPoint& point) { return time < point.time; });
  if (first != history.memory.begin()) --first;
  history.memory.erase(history.memory.begin(), first);
  for (Nanos& time : history.iterations) since(time);
  for (RunSpan& run : history.runs) since(run.begin), since(run.end);
  for (CopySpan& copy : history.copies) since(copy.issued), since(copy.begin), since(copy.end);
  for (Stay& stay : history.stays) since(stay.begin), since(stay.end);
  for (ReservedSegment& segment : history.segments) since(segment.begin), since(segment.end);
  for (MemoryPoint& point : history.memory) since(point.time);
  since(history.end);
  history.begin = {};
  return history;
}

}  // namespace tidepool
