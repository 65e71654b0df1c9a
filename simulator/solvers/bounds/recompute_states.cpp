#include "simulator/solvers/bounds/recompute_states.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/solvers/bounds/op_bounds.hpp"

namespace tidepool {
namespace {

using Set = std::uint64_t;  // of versions

constexpr std::size_t kMostVersions = 64;

/// The effect of one run of an op on memory, as sets of versions.
struct Run {
  Set inputs = 0, made = 0, held = 0;
  Bytes working_set;      // bytes of `held` and of versions without a number
  std::int64_t cost = 0;  // ns
  bool repeatable = false;
};

class StateSearch {
 public:
  StateSearch(const Trace& trace, Bytes capacity, std::int64_t most_work)
      : trace_{trace}, capacity_{capacity}, most_work_{most_work}, n_{trace.ops().size()} {}

  RecomputeStates run() {
    RecomputeStates result;
    number_versions();
    if (versions_.size() > kMostVersions) return result;
    describe_ops();
    find_uses();
    left_.resize(n_ + 1);
    reach(0, 0, start_);
    while (!open_.empty()) {
      const State state = open_.top();
      open_.pop();
      result.least = state.cost;
      if (is_dominated(state)) continue;
      ++result.states;
      if (state.next == n_ && (state.there & wanted_) == wanted_) {
        result.exact = true;
        return result;
      }
      if (!leave(state)) return result;  // too much work: no path is shorter than the path to this state
    }
    result.feasible = false;
    return result;
  }

 private:
  struct State {
    std::int64_t cost = 0;
    std::size_t next = 0;  // op of the program that runs next
    Set there = 0;
    bool operator<(const State& other) const {  // order of search: least cost, then furthest in the program
      if (cost != other.cost) return cost > other.cost;
      if (next != other.next) return next < other.next;
      return there < other.there;
    }
  };

  Set set_of(VersionId root) const {
    const auto found = numbers_.find(root.value());
    return found == numbers_.end() ? 0 : Set{1} << found->second;
  }

  /// Numbers the versions that may be worth keeping. Initial content of a buffer that the step allocates is not.
  void number_versions() {
    for (std::size_t i = 0; i < trace_.versions().size(); ++i) {
      const Version& version = trace_.versions()[i];
      const VersionId v{i};
      const bool came = version.kind == VersionKind::kInitial && !trace_.buffer(version.buffer).born_before;
      if (version.kind == VersionKind::kView || came || trace_.size(v) == Bytes{}) continue;
      const auto number = static_cast<std::uint32_t>(versions_.size());
      numbers_.emplace(v.value(), number);
      versions_.push_back(v);
      sizes_.push_back(trace_.size(v));
      if (versions_.size() > kMostVersions) return;
      if (version.kind == VersionKind::kInitial) start_ |= Set{1} << number;
    }
    for (const VersionId v : handed_on(trace_)) wanted_ |= set_of(v);
  }

  void describe_ops() {
    for (std::size_t i = 0; i < n_; ++i) {
      const OpId op{i};
      const WorkingSet working = working_set(trace_, {}, op);
      Run run{.working_set = working.bytes,
              .cost = trace_.op(op).duration.count(),
              .repeatable = trace_.op(op).kind != OpKind::kSource};
      for (const Use& use : trace_.uses(op))
        if (use.in.valid()) run.inputs |= set_of(trace_.root(use.in));
      for (const VersionId v : trace_.made(op)) run.made |= set_of(v);
      for (const VersionId v : working.held) run.held |= set_of(v);
      run.inputs &= ~run.made;  // versions that it writes first and then reads
      runs_.push_back(run);
    }
  }

  /// By the op of the program that runs next: versions that this op, a later one or the end of the step needs, and
  /// versions from which these can be made.
  void find_uses() {
    of_use_.assign(n_ + 1, wanted_);
    for (std::size_t k = n_ + 1; k-- > 0;) {
      Set& use = of_use_[k];
      if (k < n_) use |= of_use_[k + 1] | runs_[k].inputs;
      for (bool more = true; std::exchange(more, false);)
        for (std::size_t i = 0; i < k; ++i)
          if (runs_[i].repeatable && (runs_[i].made & use) != 0 && (runs_[i].inputs & ~use) != 0)
            use |= runs_[i].inputs, more = true;
    }
  }

  Bytes bytes(Set set) const {
    Bytes sum;
    for (; set != 0; set &= set - 1) sum += sizes_[static_cast<std::size_t>(std::countr_zero(set))];
    return sum;
  }

  void reach(std::int64_t cost, std::size_t next, Set there) {
    there &= of_use_[next];
    if (next == n_ && (there & wanted_) == wanted_) there = wanted_;
    const State state{cost, next, there};
    if (!is_dominated(state)) open_.push(state);
  }

  /// Whether a state that was expanded before (so at no larger cost) has all versions of this one.
  bool is_dominated(const State& state) const {
    return std::any_of(left_[state.next].begin(), left_[state.next].end(),
                       [&](Set there) { return (state.there & ~there) == 0; });
  }

  /// Finds the states that follow a state. @return  false if it takes too much work
  bool leave(const State& state) {
    left_[state.next].push_back(state.there);
    work_ += static_cast<std::int64_t>(1 + left_[state.next].size() / 8);
    if (state.next < n_ && !run(state, state.next, state.next + 1, 0)) return false;
    for (std::size_t i = 0; i < state.next; ++i) {
      const Run& again = runs_[i];
      if (!again.repeatable || (again.made & of_use_[state.next] & ~state.there) == 0) continue;
      if (!run(state, i, state.next, again.cost)) return false;
    }
    return work_ <= most_work_;
  }

  bool run(const State& state, std::size_t op, std::size_t next, std::int64_t cost) {
    const Run& run = runs_[op];
    if ((run.inputs & ~state.there) != 0) return true;
    const Set there = (state.there | run.made) & (of_use_[next] | run.held);
    const Set others = there & ~run.held;
    std::vector<std::uint32_t> droppable;
    for (Set rest = others; rest != 0; rest &= rest - 1)
      droppable.push_back(static_cast<std::uint32_t>(std::countr_zero(rest)));
    std::sort(droppable.begin(), droppable.end(),
              [&](std::uint32_t a, std::uint32_t b) { return sizes_[a] > sizes_[b]; });
    const Bytes excess = run.working_set + bytes(others) - capacity_;
    if (run.working_set > capacity_) return true;
    return drop(droppable, 0, excess, Bytes{}, there, [&](Set stays) { reach(state.cost + cost, next, stays); });
  }

  /// Tries all minimal ways to drop at least `excess` bytes: each dropped version is needed for that.
  bool drop(const std::vector<std::uint32_t>& from, std::size_t first, Bytes excess, Bytes least, Set there,
            const std::function<void(Set)>& found) {
    if (++work_ > most_work_) return false;
    if (excess <= Bytes{}) {
      if (least == Bytes{} || least + excess > Bytes{}) found(there);
      return true;
    }
    for (std::size_t i = first; i < from.size(); ++i) {
      const Bytes size = sizes_[from[i]];
      if (!drop(from, i + 1, excess - size, size, there & ~(Set{1} << from[i]), found)) return false;
    }
    return true;
  }

  const Trace& trace_;
  const Bytes capacity_;
  const std::int64_t most_work_;
  const std::size_t n_;
  std::unordered_map<std::uint32_t, std::uint32_t> numbers_;  // by version
  std::vector<VersionId> versions_;                           // by number
  std::vector<Bytes> sizes_;
  Set start_ = 0, wanted_ = 0;
  std::vector<Run> runs_;    // by op
  std::vector<Set> of_use_;  // by op of the program that runs next: versions with a later use
  std::priority_queue<State> open_;
  std::vector<std::vector<Set>> left_;  // expanded states, by the op that runs next
  std::int64_t work_ = 0;
};

std::optional<Bound> states_bound(const BoundQuery& query) {
  constexpr std::int64_t kMostWork = 50'000;  // takes some 5 ms
  const Assumptions& assume = query.assume;
  if (!query.remat || query.trace.data().streams.size() > 1 || assume.copy_on_write || assume.pin_sources ||
      query.capacity >= query.trace.ideal_peak())
    return std::nullopt;
  const RecomputeStates found = recompute_states(query.trace, query.capacity, kMostWork);
  if (!found.feasible)
    return Bound{.feasible = false,
                 .proof = fmt::format("none of {} states of memory leads to the end of the step", found.states)};
  if (found.least == 0) return std::nullopt;
  const std::vector<Nanos> ends = earliest_ends(query.trace);
  return Bound{
      .makespan = clock_start(query) + ends.back() + Nanos{found.least},
      .proof = fmt::format("ops that take {} must run again: {} {} states of memory", to_text(Nanos{found.least}),
                           found.exact ? "the shortest of all paths through" : "a lower bound after a search through",
                           found.states),
      .limited_by = Resource::kRecompute};
}

const RegisterBound kRecomputeStates{
    {.name = "memory-states",
     .summary = "all ways to keep, drop and run again in a small step: shortest paths through the states of memory",
     .swap = false,
     .steady = true,
     .compute = states_bound}};

}  // namespace

RecomputeStates recompute_states(const Trace& trace, Bytes capacity, std::int64_t most_work) {
  return StateSearch{trace, capacity, most_work}.run();
}

}  // namespace tidepool
