#include "policies/planning/gaps/realised_step.hpp"

#include <algorithm>

#include "simulator/engine/timeline.hpp"

namespace tidepool {
namespace {

struct Span {
  Nanos begin, end;
};

/// Copies of one direction; copies with hardly a pause between them form one interval. They are added in order.
class Lane {
 public:
  explicit Lane(Nanos pause) : pause_{pause} {}

  void clear() { busy_.clear(); }
  void add(Nanos end, Nanos time) {
    if (!busy_.empty() && end - time <= busy_.back().end + pause_)
      busy_.back().end = std::max(busy_.back().end, end);
    else
      busy_.push_back({end - time, end});
  }

  /// By op: whether the lane was busy when the op started, and stayed busy until the start of some op that waited for
  /// it. An interval that began before the iteration counts at the end of the iteration too.
  std::vector<bool> exposed(const StepCircle& circle, const std::vector<Nanos>& waited) const {
    std::vector<bool> exposed(circle.size());
    const auto op_from = [&](Nanos time) {
      return static_cast<std::size_t>(std::lower_bound(circle.start.begin(), circle.start.end() - 1, time) -
                                      circle.start.begin());
    };
    const auto mark = [&](std::size_t first, std::size_t last) {
      std::fill(exposed.begin() + static_cast<std::ptrdiff_t>(first),
                exposed.begin() + static_cast<std::ptrdiff_t>(last), true);
    };
    for (const Span& span : busy_) {
      const std::size_t first = op_from(span.begin - pause_);
      std::size_t last = op_from(span.end + pause_ + Nanos{1});
      while (last > first && waited[last - 1] <= pause_ / 10) --last;
      if (last == first) continue;
      mark(first, last);
      if (span.begin < Nanos{}) mark(op_from(circle.period() + span.begin), circle.size());
    }
    return exposed;
  }

 private:
  Nanos pause_;
  std::vector<Span> busy_;
};

}  // namespace

RealisedStep realised_step(const Trace& trace, const RunSpec& spec, const StepCircle& circle, const Plan& plan) {
  RealisedStep step{circle, {}, {}};
  std::vector<VersionState> states;
  Timeline timeline{trace, spec.machine, spec.assume, states, spec.capacity};
  const Nanos pause = circle.period() / 20'000;
  Lane out{pause}, in{pause};
  std::vector<Nanos> waited_out(circle.size()), waited_in(circle.size());
  Nanos begin, latest;
  for (const Action& action : plan.actions) {
    const Stall before = timeline.stall();
    timeline.apply(action);
    if (action.verb == Verb::kNext) {
      begin = timeline.now({}), latest = {};
      out.clear();
      in.clear();
    }
    if (action.verb == Verb::kSwapOut || action.verb == Verb::kSwapIn) {
      const VersionId v{action.subject};
      const bool leaves = action.verb == Verb::kSwapOut;
      const Storage& storage = spec.machine.storage;
      const Link& link = states[v.index()].in_storage ? (leaves ? storage.write : storage.read)
                                                      : (leaves ? spec.machine.d2h : spec.machine.h2d);
      (leaves ? out : in)
          .add((leaves ? states[v.index()].host_ready : states[v.index()].ready) - begin, link.time(trace.size(v)));
    }
    if (action.verb != Verb::kRun) continue;
    const Op& op = trace.ops()[action.subject];
    latest = std::max(latest, timeline.done(op.stream) - op.duration - begin);
    step.circle.start[action.subject] = latest;
    waited_out[action.subject] = timeline.stall().d2h - before.d2h;
    waited_in[action.subject] = timeline.stall().h2d - before.h2d;
  }
  step.circle.start.back() = std::max(latest, timeline.totals().makespan);
  step.exposed_out = out.exposed(step.circle, waited_out);
  step.exposed_in = in.exposed(step.circle, waited_in);
  Nanos waited, before;
  for (std::size_t k = 0; k < circle.size(); ++k) {  // a wait of another stream need not delay this op
    Nanos& start = step.circle.start[k];
    waited += std::min(waited_in[k], start - before);
    before = start;
    start -= waited;
  }
  step.circle.start.back() -= waited;
  return step;
}

std::vector<Nanos> clock_of_plan(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  std::vector<VersionState> states;
  Timeline timeline{trace, spec.machine, spec.assume, states, spec.capacity};
  std::vector<Nanos> start(trace.ops().size() + 1);
  Nanos begin, reruns, latest;
  std::size_t next = 0;
  for (const Action& action : plan.actions) {
    timeline.apply(action);
    if (action.verb == Verb::kNext) begin = timeline.now({}), reruns = latest = Nanos{}, next = 0;
    if (action.verb != Verb::kRun) continue;
    const Op& op = trace.ops()[action.subject];
    if (action.subject != next) {
      reruns += op.duration;
      continue;
    }
    latest = std::max(latest, timeline.done(op.stream) - op.duration - begin - reruns);
    start[next++] = latest;
  }
  start.back() = std::max(latest, timeline.now({}) - begin - reruns);
  return start;
}

}  // namespace tidepool
