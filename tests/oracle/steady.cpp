#include "tests/oracle/steady.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/engine/timeline.hpp"
#include "tests/oracle/choices.hpp"
#include "tests/oracle/labels.hpp"
#include "tests/oracle/purpose.hpp"
#include "tests/oracle/remaining.hpp"

namespace tidepool {
namespace optimum {
namespace {

using Moves = std::vector<Move>;

/// A search over the states in which an iteration may begin, all ways to reach them, and the time from one to the next.
class IterationSearch {
 public:
  IterationSearch(const TinyStep& step, std::int64_t most_states)
      : step_{step}, most_states_{most_states}, labels_{step}, choices_{step} {}

  std::int64_t states() const { return static_cast<std::int64_t>(labels_.size()); }

  enum class End : std::uint8_t { kNothingLeft, kFound, kGaveUp };

  /// Every iteration moves all times earlier by TinyStep::shift. Searches for a sequence of iterations after which the
  /// state recurs at an earlier time: its mean time is below the shift. The sequence begins at time 0 without copies
  /// under way. If plans may swap, all content is on the host then, and any part of it also on the device: no state
  /// with the same content on the device is better. A cycle whose mean is below the shift can be begun so that all
  /// later iterations begin before 0. So the search does not continue sequences in which a later iteration begins at
  /// 0 or after it.
  /// @param improves  whether repeating found(), from start() on, is good enough to end the search
  template <class Improves>
  End find_cycle(Improves improves) {
    begin_anywhere(0, State{});
    if (tried_ > most_states_) return End::kGaveUp;
    return search(true, [&](Labels::Number label) {
      for (Labels::Number at = came_[label].from; at != kNone; at = came_[at].from) {
        if (!came_[at].begins || !labels_.never_worse(label, at)) continue;
        found_ = moves_between(at, label);
        start_ = labels_.state(at);
        if (improves()) return true;
      }
      return false;
    });
  }

  /// Searches for moves from the beginning of a run to an iteration that begins with the content of `to` in the same
  /// places.
  End find_way(const State& to) {
    reach(State{}, kNone, Move{}, Purpose{}, false);
    return search(false, [&](Labels::Number label) {
      const State state = labels_.state(label);
      if (state.placed != to.placed || state.filled != to.filled || state.on_host != to.on_host) return false;
      if (step_.freedom.addresses && state.unit_at != to.unit_at) return false;
      found_ = moves_between(kNone, label);
      return true;
    });
  }

  const Moves& found() const { return found_; }
  /// The state in which the found cycle begins.
  const State& start() const { return start_; }

 private:
  static constexpr Labels::Number kNone = ~Labels::Number{0};

  struct Open {
    Nanos next;
    int position = 0;
    Labels::Number label = 0;
    bool operator<(const Open& other) const {
      return std::tie(other.next, position, label) < std::tie(next, other.position, other.label);
    }
  };
  struct Step {
    Labels::Number from = 0;
    Move move;
    Purpose purpose;
    bool begins = false;  ///< whether it begins an iteration
  };

  /// Tries all places of the content of carried[i] and of later entries at the beginning of an iteration.
  void begin_anywhere(std::size_t i, State state) {
    if (++tried_ > most_states_) return;
    if (i == step_.carried.size()) {
      state.repeated = true;
      if (step_.freedom.swap) state.on_host = step_.carried_first;
      Mover{step_, state}.skip_carried();
      reach(state, kNone, Move{.kind = MoveKind::kNext}, Purpose{}, true);
      return;
    }
    const std::size_t v = step_.carried[i][0];
    if (step_.freedom.swap) begin_anywhere(i + 1, state);
    if (step_.freedom.swap && !has(step_.useful[0], v)) return;
    const auto length = static_cast<std::size_t>(step_.bytes[v] / step_.unit);
    for (std::size_t at = 0; at == 0 || (step_.freedom.addresses && at + length <= step_.units); ++at) {
      State placed = state;
      placed.placed |= bit(v);
      placed.filled = placed.placed;
      placed.unit_at[v] = static_cast<std::uint8_t>(at);
      if (fits(placed)) begin_anywhere(i + 1, placed);
    }
  }

  bool fits(const State& state) const {
    if (!step_.freedom.addresses) return step_.size(state.placed) <= step_.capacity;
    std::uint64_t taken = 0;
    bool apart = true;
    for_each(state.placed, [&](std::size_t v) {
      for (std::int64_t i = 0; i < step_.bytes[v] / step_.unit; ++i) {
        const std::size_t at = state.unit_at[v] + static_cast<std::size_t>(i);
        apart &= at < step_.units && (taken >> at & 1) == 0;
        taken |= std::uint64_t{1} << at;
      }
    });
    return apart;
  }

  template <class IsEnd>
  End search(bool before_zero, IsEnd is_end) {
    while (!open_.empty()) {
      const Open next = open_.top();
      open_.pop();
      if (labels_.beaten(next.label)) continue;
      if (came_[next.label].begins && is_end(next.label)) return End::kFound;
      if (labels_.exceed(most_states_)) return End::kGaveUp;
      const State state = labels_.state(next.label);
      const Purpose so_far = came_[next.label].purpose;
      for (const Move& move : choices_.of(state, so_far.fresh)) {
        State after = state;
        Move made = move;
        made.frees = Mover{step_, after}.apply(move);
        made.frees_decided = true;
        const bool begins = move.kind == MoveKind::kNext;
        if (after.begun == step_.before_step.size() && !recoverable(step_, after)) continue;
        if (before_zero && earliest_next(step_, after) - step_.shift >= Nanos{} && !begins) continue;
        if (before_zero && begins && after.base(step_) >= Nanos{}) continue;
        if (move.kind == MoveKind::kRun && came_too_early(step_, after)) continue;
        Purpose purpose = so_far;
        if (purpose.note(step_, state, made, after)) reach(after, next.label, made, purpose, begins);
      }
    }
    return End::kNothingLeft;
  }

  void reach(const State& state, Labels::Number from, const Move& move, const Purpose& purpose, bool begins) {
    const std::optional<Labels::Number> label = labels_.add(state);
    if (!label) return;
    came_.push_back({from, move, purpose, begins});
    open_.push({earliest_next(step_, state), state.position, *label});
  }

  Moves moves_between(Labels::Number first, Labels::Number last) const {
    Moves moves;
    for (Labels::Number at = last; at != first; at = came_[at].from)
      if (came_[at].from != kNone) moves.push_back(came_[at].move);
    std::reverse(moves.begin(), moves.end());
    return moves;
  }

  const TinyStep& step_;
  const std::int64_t most_states_;
  std::int64_t tried_ = 0;  ///< initial states that were tried, complete and partial ones
  Labels labels_;
  Choices choices_;
  std::vector<Step> came_;  ///< by label
  std::priority_queue<Open> open_;
  Moves found_;
  State start_;
};

/// A sequence of iterations that is repeated until the state at its beginning recurs.
struct Settled {
  std::int64_t first = 0, last = 0;  ///< numbers of two repetitions with the same state
  Nanos time;                        ///< time from one to the other
};

/// Repeats the moves until the state recurs. None if it does not recur within kMost repetitions, for example because
/// streams that do not wait for each other drift apart.
std::optional<Settled> settle(const TinyStep& step, State state, const Moves& moves) {
  constexpr std::int64_t kMost = 300;
  std::map<std::vector<std::int64_t>, std::pair<std::int64_t, Nanos>> met;
  for (std::int64_t i = 0; i < kMost; ++i) {
    const Nanos base = state.base(step);
    const auto [at, is_new] = met.try_emplace(Labels::offsets(step, state), i, base);
    if (!is_new) return Settled{at->second.first, i, base - at->second.second};
    for (const Move& move : moves) Mover{step, state}.apply(move);
  }
  return std::nullopt;
}

std::int64_t iterations_of(const Moves& moves) {
  return std::count_if(moves.begin(), moves.end(), [](const Move& move) { return move.kind == MoveKind::kNext; });
}

/// A mean time: `total` over `iterations`.
struct Mean {
  Nanos total;
  std::int64_t iterations = 1;
  bool operator<(const Mean& other) const {
    return static_cast<Int128>(total.count()) * other.iterations <
           static_cast<Int128>(other.total.count()) * iterations;
  }
};

class CycleSearch {
 public:
  CycleSearch(const OptimumQuery& query, const Freedom& freedom)
      : query_{query}, freedom_{freedom}, step_{query.trace, query.machine, query.capacity, freedom} {}

  SteadyOptimum run() {
    SteadyOptimum found;
    Mean best = longest();
    bool settles = true;
    for (;;) {
      TinyStep shifted = step_;
      shifted.scale(best.iterations, best.total);
      IterationSearch search{shifted, query_.most_states};
      const IterationSearch::End end = search.find_cycle([&] {
        const std::optional<Settled> settled = settle(step_, at_rest(search.start()), search.found());
        settles = settled.has_value();
        if (!settled) return true;
        const Mean mean{settled->time, (settled->last - settled->first) * iterations_of(search.found())};
        if (!(mean < best)) return false;  // only lanes for which nothing waits were done earlier
        best = reduced(mean);
        return true;
      });
      found.states += search.states();
      if (end != IterationSearch::End::kFound || !settles) {
        found.exact = end == IterationSearch::End::kNothingLeft;
        break;
      }
      start_ = at_rest(search.start());
      cycle_ = search.found();
      found.feasible = true;
      found.cycle = best.total;
      found.iterations = best.iterations;
    }
    if (found.feasible && !make_plan(found)) found.exact = false;
    return found;
  }

 private:
  /// Longer than any iteration.
  Mean longest() const {
    Nanos sum = Nanos{1'000} + step_.submit + step_.launch;
    for (const TinyOp& op : step_.op) sum += op.duration;
    for (const auto* times : {&step_.time_in, &step_.time_out, &step_.time_copy})
      for (const Nanos time : *times) sum += time;
    return {sum * 10'000, 1};
  }

  static Mean reduced(Mean mean) {
    const std::int64_t common = std::gcd(mean.total.count(), mean.iterations);
    return {mean.total / common, mean.iterations / common};
  }

  /// The same content in the same places, without copies under way.
  static State at_rest(const State& state) {
    State rest;
    rest.placed = state.placed, rest.filled = state.filled, rest.on_host = state.on_host;
    rest.unit_at = state.unit_at, rest.begun = state.begun, rest.repeated = true;
    return rest;
  }

  bool make_plan(SteadyOptimum& found) {
    IterationSearch search{step_, query_.most_states};
    const IterationSearch::End end = search.find_way(start_);
    found.states += search.states();
    if (end != IterationSearch::End::kFound) return false;
    State state;
    for (const Move& move : search.found()) Mover{step_, state}.apply(move);
    const std::optional<Settled> settled = settle(step_, state, cycle_);
    if (!settled) return false;
    Moves moves = search.found();
    for (std::int64_t i = 0; i < settled->last; ++i) moves.insert(moves.end(), cycle_.begin(), cycle_.end());
    moves.pop_back();  // the plan ends with its last iteration
    found.cycle = settled->time;
    found.iterations = (settled->last - settled->first) * iterations_of(cycle_);
    State begin;
    for (const Move& move : moves) Mover{step_, begin, &found.plan.actions}.apply(move);
    std::uint32_t iteration = 0;
    for (Action& action : found.plan.actions)
      if (action.verb == Verb::kNext) action.before = OpId{0}, action.subject = ++iteration;
    if (!step_.chooses_bytes()) return true;
    const std::vector<Nanos> ends = iteration_ends(query_.trace, query_.machine, query_.capacity, found.plan);
    if (ends.back() - ends[ends.size() - 1 - static_cast<std::size_t>(found.iterations)] == found.cycle) return true;
    found.feasible = false;  // the device would choose other bytes
    found.cycle = {}, found.iterations = 0, found.plan = {};
    return false;
  }

  const OptimumQuery& query_;
  const Freedom freedom_;
  const TinyStep step_;
  State start_;
  Moves cycle_;
};

}  // namespace
}  // namespace optimum

SteadyOptimum find_steady_optimum(const OptimumQuery& query) {
  return optimum::CycleSearch{query, {query.swap, query.remat, query.addresses, true}}.run();
}

std::vector<Nanos> iteration_ends(const Trace& trace, const Machine& machine, Bytes capacity, const Plan& plan) {
  std::vector<VersionState> states;
  Timeline timeline{trace, machine, {}, states, capacity};
  std::vector<Nanos> ends;
  Nanos before;
  const auto end_iteration = [&] { ends.push_back(before += timeline.totals().makespan); };
  for (const Action& action : plan.actions) {
    if (action.verb == Verb::kNext) end_iteration();
    timeline.apply(action);
  }
  end_iteration();
  return ends;
}

}  // namespace tidepool
