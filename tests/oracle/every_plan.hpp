// A search of all plans for steps of three or four ops. Plans are executed by Checker and Timeline alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "simulator/engine/checker.hpp"
#include "simulator/engine/timeline.hpp"
#include "simulator/run_spec.hpp"
#include "tests/oracle/optimum.hpp"

namespace tidepool::tests {

/// Tries every sequence of actions, and executes each one from its beginning. A sequence is not continued if it cannot
/// end before the limit, or if another one has led to the same state, with the same times to the nanosecond. Places
/// begin at multiples of 1 MiB.
class EveryPlan {
 public:
  EveryPlan(const OptimumQuery& query, std::size_t most_states)
      : trace_{query.trace}, query_{query}, most_states_{most_states} {
    spec_.capacity = query.capacity;
    spec_.machine = query.machine;
    for (std::size_t i = 0; i < trace_.versions().size(); ++i)
      if (trace_.versions()[i].kind != VersionKind::kView) roots_.push_back(VersionId{i});
  }

  /// Whether some plan takes less time than `limit`. None if there are too many plans to try.
  std::optional<bool> beats(Nanos limit) {
    limit_ = limit;
    begin(0);
    if (found_) return true;
    if (met_.size() > most_states_) return std::nullopt;
    return false;
  }
  const Plan& plan() const { return plan_; }
  std::size_t states() const { return met_.size(); }

 private:
  /// The state that a partial plan leads to.
  struct Run {
    Run(const Trace& trace, const RunSpec& spec)
        : checker{trace, spec},
          timeline{trace, spec.machine, spec.assume, states, spec.capacity},
          copied(trace.versions().size()),
          counted{spec.capacity, trace.data().streams.size() <= 1} {}
    Checker checker;
    std::vector<VersionState> states;
    Timeline timeline;
    std::vector<bool> copied;  ///< the place has a copy of the parent, and not yet its own content
    std::size_t position = 0;
    std::vector<std::pair<VersionId, Bytes>> scratch;
    std::set<std::uint32_t> began_on_host;
    Nanos h2d, d2h, counted_free;
    std::vector<std::pair<Bytes, Nanos>> free;  ///< for the key: (address, time), (size, time) of freed places
    CountedMemory counted;                      ///< a copy of the timeline's, for the key
    std::uint32_t in = 0, out = 0;
  };

  /// Chooses the initial versions that begin on the device, from buffer `i` on.
  void begin(std::size_t i) {
    while (i < trace_.buffers().size() && !trace_.buffers()[i].born_before) ++i;
    if (i == trace_.buffers().size()) return extend();
    const VersionId v = trace_.first_version(BufferId{i});
    if (query_.swap) begin(i + 1);
    for_each_place(v, [&](Bytes offset) {
      plan_.actions.push_back({Verb::kAlloc, first(), v.value(), offset, trace_.size(v)});
      if (!found_ && executes()) begin(i + 1);
      if (!found_) plan_.actions.pop_back();
    });
  }

  OpId first() const { return trace_.ops().empty() ? OpId{} : OpId{0}; }

  template <class Visit>
  void for_each_place(VersionId v, Visit visit) const {
    if (!query_.addresses) return visit(kNoAddress);
    for (Bytes offset; offset + trace_.size(v) <= spec_.capacity; offset += 1_MiB) visit(offset);
  }

  std::optional<Run> execute() const {
    std::optional<Run> run;
    run.emplace(trace_, spec_);
    try {
      for (const Action& action : plan_.actions) apply(*run, action);
    } catch (const PlanError&) {
      run.reset();
    }
    return run;
  }
  bool executes() const { return execute().has_value(); }

  void apply(Run& run, const Action& action) const {
    const VersionId v{action.subject};
    if (action.verb == Verb::kRun)
      for (const VersionId made : trace_.made(OpId{action.subject})) {
        const VersionState& s = run.states[made.index()];
        const bool own = s.placed && !s.filled && trace_.version(made).kind == VersionKind::kUpdate;
        if (own && trace_.version(made).parent.valid() && !run.copied[made.index()])
          throw PlanError{"what it updates has not been copied"};
      }
    run.checker.check(action);
    const std::vector<VersionState> before = run.states;
    if (action.verb == Verb::kAlloc || action.verb == Verb::kSwapIn || action.verb == Verb::kScratch)
      run.counted.take(trace_.size(v), run.timeline.held());
    run.timeline.apply(action);
    if (action.verb == Verb::kCopy) run.copied[v.index()] = true;
    if (action.verb == Verb::kScratch) run.scratch.emplace_back(v, action.offset);
    if (action.verb == Verb::kSwapIn) run.h2d = run.states[v.index()].ready, ++run.in;
    if (action.verb == Verb::kSwapOut) run.d2h = run.states[v.index()].host_ready, ++run.out;
    if (action.verb == Verb::kRun) {
      const Nanos end = run.timeline.done(trace_.op(OpId{action.subject}).stream);
      for (const auto& [made, offset] : run.scratch) run.counted.release(trace_.size(made), {end, {}});
      run.scratch.clear();
      run.position = std::max<std::size_t>(run.position, action.subject + std::size_t{1});
    }
    for (const VersionId root : roots_) {
      const VersionState& old = before[root.index()];
      if (!old.placed || run.states[root.index()].placed) continue;
      run.copied[root.index()] = false;
      const Nanos until = std::max(run.states[root.index()].last_use, old.ready);
      run.counted_free = std::max(run.counted_free, until);
      run.free.emplace_back(old.offset, until);
      run.free.emplace_back(trace_.size(root), until);
      if (!taken_over(run, before, action, root)) run.counted.release(trace_.size(root), {until, {}});
    }
  }

  /// Whether the action runs an op and an output of the op has got the place of `parent`.
  bool taken_over(const Run& run, const std::vector<VersionState>& before, const Action& action,
                  VersionId parent) const {
    if (action.verb != Verb::kRun) return false;
    const auto made = trace_.made(OpId{action.subject});
    return std::any_of(made.begin(), made.end(), [&](VersionId out) {
      return trace_.version(out).parent == parent && !before[out.index()].placed && run.states[out.index()].placed;
    });
  }

  std::vector<std::int64_t> key_of(Run& run) const {
    std::vector<std::int64_t> key{static_cast<std::int64_t>(run.position), run.h2d.count(), run.d2h.count(),
                                  run.counted_free.count()};
    for (std::size_t i = 0; i < trace_.data().streams.size(); ++i)
      key.push_back(run.timeline.done(StreamId{i}).count());
    for (const VersionId v : roots_) {
      const VersionState& s = run.states[v.index()];
      key.push_back(s.placed | s.filled << 1 | s.on_host << 2 | run.copied[v.index()] << 3);
      for (const Nanos time : {s.ready, s.last_use, s.host_ready}) key.push_back(time.count());
      key.push_back(s.placed ? s.offset.count() : 0);
    }
    for (const auto& [v, offset] : run.scratch) key.insert(key.end(), {v.value(), offset.count()});
    if (trace_.data().streams.size() > 1 && !query_.addresses)
      run.counted.for_each([&](Bytes size, const Moment& from) {
        key.insert(key.end(), {size.count(), from.time.count()});
      });
    if (query_.addresses)
      for (const auto& [offset, until] : run.free) key.insert(key.end(), {offset.count(), until.count()});
    for (std::uint32_t i = 1; i <= run.timeline.pieces(Direction::kOut); ++i)
      key.push_back(run.timeline.piece_span(Direction::kOut, i).second.count());
    for (std::uint32_t i = 1; i <= run.timeline.pieces(Direction::kIn); ++i)
      key.push_back(run.timeline.piece_span(Direction::kIn, i).second.count());
    return key;
  }

  void extend() {
    if (found_ || met_.size() > most_states_) return;
    std::optional<Run> run = execute();
    if (!run) return;
    const Nanos drained = run->timeline.totals().makespan;
    Nanos left;
    for (std::size_t i = run->position; i < trace_.ops().size(); ++i)
      if (trace_.data().streams.size() == 1) left += trace_.ops()[i].duration;
    if (drained >= limit_ || run->timeline.done(StreamId{0}) + left >= limit_) return;
    if (run->position == trace_.ops().size() && ends(*run)) {
      found_ = true;
      return;
    }
    if (!met_.insert(key_of(*run)).second) return;
    const OpId before = run->position < trace_.ops().size() ? OpId{run->position} : OpId{};
    const auto attempt = [&](Verb verb, std::uint32_t subject, Bytes offset = {}, Bytes size = {}) {
      if (found_) return;
      plan_.actions.push_back({verb, before, subject, offset, size});
      if (executes()) extend();
      if (!found_) plan_.actions.pop_back();
    };
    for (std::uint32_t op = 0; op <= run->position && op < trace_.ops().size(); ++op)
      if (op == run->position || query_.remat) attempt(Verb::kRun, op);
    for (const VersionId v : roots_) {
      const VersionState s = run->states[v.index()];
      const bool from_before =
          trace_.version(v).kind == VersionKind::kInitial && trace_.buffer(trace_.version(v).buffer).born_before;
      if (!s.placed && !from_before)
        for_each_place(v, [&](Bytes offset) { attempt(Verb::kAlloc, v.value(), offset, trace_.size(v)); });
      if (s.placed && !s.filled && trace_.version(v).kind == VersionKind::kUpdate) attempt(Verb::kCopy, v.value());
      if (s.filled) attempt(Verb::kDrop, v.value());
      if (s.filled && query_.remat && run->scratch.empty())
        for_each_place(v, [&](Bytes offset) { attempt(Verb::kScratch, v.value(), offset, trace_.size(v)); });
      if (!query_.swap) continue;
      if (s.filled && !s.on_host) attempt(Verb::kSwapOut, v.value());
      if (s.on_host && !s.placed)
        for_each_place(v, [&](Bytes offset) { attempt(Verb::kSwapIn, v.value(), offset, trace_.size(v)); });
      if (s.on_host && before.valid()) attempt(Verb::kAwait, v.value());
    }
  }

  bool ends(const Run& run) const {
    try {
      run.checker.finish();
    } catch (const PlanError&) {
      return false;
    }
    return true;
  }

  const Trace& trace_;
  const OptimumQuery query_;
  const std::size_t most_states_;
  RunSpec spec_;
  std::vector<VersionId> roots_;
  Nanos limit_;
  Plan plan_;
  std::set<std::vector<std::int64_t>> met_;
  bool found_ = false;
};

}  // namespace tidepool::tests
