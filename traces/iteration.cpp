#include "traces/iteration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/builder.hpp"
#include "traces/copied.hpp"
#include "traces/program_names.hpp"

namespace tidepool {
namespace {

/// Steps [first, last) of an iteration.
std::pair<std::size_t, std::size_t> range_of(const TraceData& data, std::size_t number) {
  std::vector<std::size_t> begins;
  for (const Mark& mark : data.marks)
    if (mark.kind == MarkKind::kIteration) begins.push_back(mark.event);
  if (begins.empty()) throw InputError{fmt::format("iteration {}: the trace marks no iterations", number)};
  if (number >= begins.size())
    throw InputError{fmt::format("iteration {}: the trace has {}, counted from 0", number, begins.size())};
  return {begins[number], number + 1 < begins.size() ? begins[number + 1] : data.events.size()};
}

/// Indices of the marks that begin an iteration. A mark "after ..." begins ops after an iteration and is left out.
std::vector<std::size_t> begins_of_complete(const Trace& trace) {
  constexpr std::string_view kBehind = "after ";
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < trace.data().marks.size(); ++i) {
    const Mark& mark = trace.data().marks[i];
    if (mark.kind == MarkKind::kIteration && !trace.text(mark.name).starts_with(kBehind)) begins.push_back(i);
  }
  return begins;
}

/// The complete iterations [first, first + count), as the range of their steps: the first step, and the one after the
/// last.
std::pair<std::size_t, std::size_t> steps_of_iterations(const Trace& trace, std::size_t first, std::size_t count) {
  const std::vector<std::size_t> begins = begins_of_complete(trace);
  if (first + count > begins.size() || count == 0)
    throw InputError{fmt::format("{} iteration{} from number {}: the trace has {}, numbered from 0", count,
                                 count == 1 ? "" : "s", first, begins.size())};
  std::size_t next = begins[first + count - 1] + 1;
  while (next < trace.data().marks.size() && trace.data().marks[next].kind != MarkKind::kIteration) ++next;
  const bool last = next == trace.data().marks.size();
  return {trace.data().marks[begins[first]].event, last ? trace.events().size() : trace.data().marks[next].event};
}

class Cut {
 public:
  Cut(const Trace& trace, std::pair<std::size_t, std::size_t> range)
      : trace_{trace},
        first_{range.first},
        last_{range.second},
        builder_{trace.data().streams},
        buffers_(trace.buffers().size()),
        versions_(trace.versions().size()),
        ops_(trace.ops().size()) {}

  Trace run() {
    add_existing();
    find_origin();
    const TraceData& data = trace_.data();
    std::size_t mark = 0;
    while (mark < data.marks.size() && data.marks[mark].event < first_) ++mark;
    for (std::size_t i = first_; i < last_; ++i) {
      for (; mark < data.marks.size() && data.marks[mark].event <= i; ++mark)
        builder_.mark(data.marks[mark].kind, trace_.text(data.marks[mark].name));
      step(data.events[i]);
    }
    for (const Order& order : data.orders)
      if (ops_[order.before.index()].valid() && ops_[order.after.index()].valid())
        builder_.order(ops_[order.before.index()], ops_[order.after.index()]);
    builder_.losses() = data.losses;
    builder_.meta() = data.meta;
    return builder_.finish();
  }

 private:
  void add_existing() {
    std::vector<bool> live(buffers_.size());
    for (std::size_t i = 0; i < live.size(); ++i) live[i] = trace_.buffers()[i].born_before;
    for (std::size_t i = 0; i < first_; ++i) {
      const Event& event = trace_.events()[i];
      if (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree)
        live[event.id] = event.kind == EventKind::kAlloc;
    }
    const std::vector<OpId> is_for = ops_they_are_for(trace_);
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (!live[i]) continue;
      Buffer buffer = copied(builder_, trace_, BufferId{i});
      if (const std::string_view line = line_of(trace_, BufferId{i}, is_for[i]); !line.empty())
        buffer.line = builder_.text(line);  // the op that it is for is not in the iteration
      buffers_[i] = builder_.existing(buffer);
    }
  }

  void find_origin() {
    for (std::size_t i = first_; i < last_; ++i) {
      if (trace_.events()[i].kind != EventKind::kRun) continue;
      const Op& op = trace_.op(OpId{trace_.events()[i].id});
      for (const Nanos time : {op.start, op.launch})
        if (time >= Nanos{}) origin_ = std::min(origin_.value_or(time), time);
    }
  }

  void step(const Event& step) {
    switch (step.kind) {
      case EventKind::kAlloc:
        buffers_[step.id] = builder_.alloc(copied(builder_, trace_, BufferId{step.id}));
        break;
      case EventKind::kFree:
        builder_.free(buffers_[step.id]);
        break;
      case EventKind::kRun:
        run_op(OpId{step.id});
        break;
      case EventKind::kForget:
        if (versions_[step.id].valid()) builder_.forget(versions_[step.id]);
        break;
    }
  }

  void run_op(OpId id) {
    const std::span uses = trace_.uses(id);
    std::vector<TraceBuilder::Touch> touches;
    for (const Use& use : uses) {
      const VersionId named = use.in.valid() ? use.in : use.out;
      const BufferId buffer = buffers_[trace_.version(trace_.root(named)).buffer.index()];
      touches.push_back({buffer, use.access, use.evidence, use.in.valid() ? versions_[use.in.index()] : VersionId{}});
    }
    Op op = trace_.op(id);
    op.name = builder_.text(trace_.text(op.name));
    op.module = builder_.text(trace_.text(op.module));
    if (op.line.valid()) op.line = builder_.text(trace_.text(op.line));
    if (op.start >= Nanos{}) op.start -= *origin_;
    if (op.launch >= Nanos{}) op.launch -= *origin_;
    const std::vector<VersionId> made = builder_.run(op, touches);
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (uses[i].out.valid()) versions_[uses[i].out.index()] = made[i];
    ops_[id.index()] = builder_.last_op();
  }

  const Trace& trace_;
  std::size_t first_, last_;
  TraceBuilder builder_;
  std::vector<BufferId> buffers_;    // by buffer of the trace: its copy; invalid if it is not live in the iteration
  std::vector<VersionId> versions_;  // by version of the trace: its copy; invalid if the iteration did not make it
  std::vector<OpId> ops_;            // by op of the trace: its copy; invalid if it does not run in the iteration
  std::optional<Nanos> origin_;      // the earliest start or launch of an op of the iteration, if any is recorded
};

}  // namespace

Trace one_iteration(const Trace& trace, std::size_t number) { return Cut{trace, range_of(trace.data(), number)}.run(); }

std::size_t complete_iterations(const Trace& trace) { return begins_of_complete(trace).size(); }

std::vector<std::size_t> bounds_of_iterations(const Trace& trace) {
  std::vector<std::size_t> bounds;
  const std::vector<std::size_t> begins = begins_of_complete(trace);
  for (const std::size_t mark : begins) bounds.push_back(trace.data().marks[mark].event);
  if (!begins.empty()) bounds.push_back(steps_of_iterations(trace, begins.size() - 1, 1).second);
  return bounds;
}

Trace iterations(const Trace& trace, std::size_t first, std::size_t count) {
  return Cut{trace, steps_of_iterations(trace, first, count)}.run();
}

std::pair<std::size_t, std::size_t> ops_of_iterations(const Trace& trace, std::size_t first, std::size_t count) {
  const auto [begin, end] = steps_of_iterations(trace, first, count);
  const auto runs_before = [&](std::size_t step) {
    return static_cast<std::size_t>(std::count_if(trace.events().begin(),
                                                  trace.events().begin() + static_cast<std::ptrdiff_t>(step),
                                                  [](const Event& each) { return each.kind == EventKind::kRun; }));
  };
  return {runs_before(begin), runs_before(end)};
}

}  // namespace tidepool
