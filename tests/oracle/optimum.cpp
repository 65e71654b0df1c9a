#include "tests/oracle/optimum.hpp"

#include <algorithm>
#include <queue>
#include <tuple>
#include <vector>

#include "simulator/run.hpp"
#include "tests/oracle/choices.hpp"
#include "tests/oracle/labels.hpp"
#include "tests/oracle/places.hpp"
#include "tests/oracle/purpose.hpp"
#include "tests/oracle/remaining.hpp"
#include "tests/oracle/steady.hpp"

namespace tidepool {
namespace optimum {
namespace {

Plan plan_of(const TinyStep& step, const std::vector<Move>& moves) {
  Plan plan;
  State state;
  for (const Move& move : moves) Mover{step, state, &plan.actions}.apply(move);
  return plan;
}

/// Best-first search: partial plans by the earliest time at which they can end; of equal ones, first those in which
/// more ops of the program have run.
class Search {
 public:
  Search(const TinyStep& step, std::int64_t most_states, Nanos least)
      : step_{step}, most_states_{most_states}, least_{least}, labels_{step}, choices_{step} {}

  Optimum run() {
    reach(State{}, Labels::Number{}, Move{}, Purpose{});
    Optimum found;
    while (!open_.empty()) {
      const Open next = open_.top();
      open_.pop();
      if (labels_.beaten(next.label)) continue;
      const State state = labels_.state(next.label);
      found.makespan = next.end;
      if (state.ended(step_)) {
        found.exact = found.feasible = true;
        moves_ = moves_to(next.label);
        found.plan = plan_of(step_, moves_);
        break;
      }
      if (labels_.exceed(most_states_)) break;
      const Purpose so_far = came_[next.label].purpose;
      for (const Move& move : choices_.of(state, so_far.fresh)) {
        State after = state;
        Move made = move;
        made.frees = Mover{step_, after}.apply(move);
        made.frees_decided = true;
        if (after.begun == step_.before_step.size() && !recoverable(step_, after)) continue;
        if (move.kind == MoveKind::kRun && came_too_early(step_, after)) continue;
        Purpose purpose = so_far;
        if (purpose.note(step_, state, made, after)) reach(after, next.label, made, purpose);
      }
    }
    if (open_.empty() && !found.feasible) found.exact = true;
    found.states = static_cast<std::int64_t>(labels_.size());
    return found;
  }
  /// The moves of the plan that was found.
  const std::vector<Move>& moves() const { return moves_; }

 private:
  struct Open {
    Nanos end;
    int position = 0;
    Labels::Number label = 0;
    bool operator<(const Open& other) const {
      return std::tie(other.end, position, label) < std::tie(end, other.position, other.label);
    }
  };
  struct Step {
    Labels::Number from = 0;
    Move move;
    Purpose purpose;
  };

  void reach(const State& state, Labels::Number from, const Move& move, const Purpose& purpose) {
    const std::optional<Labels::Number> label = labels_.add(state);
    if (!label) return;
    came_.push_back({from, move, purpose});
    open_.push({std::max(least_, earliest_end(step_, state)), state.position, *label});
  }

  std::vector<Move> moves_to(Labels::Number last) const {
    std::vector<Move> moves;
    for (Labels::Number at = last; at != 0; at = came_[at].from) moves.push_back(came_[at].move);
    std::reverse(moves.begin(), moves.end());
    return moves;
  }

  const TinyStep& step_;
  const std::int64_t most_states_;
  const Nanos least_;
  Labels labels_;
  Choices choices_;
  std::vector<Step> came_;  ///< by label
  std::priority_queue<Open> open_;
  std::vector<Move> moves_;  ///< of the plan that was found
};

}  // namespace
}  // namespace optimum

Optimum find_optimum(const OptimumQuery& query) {
  using namespace optimum;
  const TinyStep counted{query.trace, query.machine, query.capacity, {query.swap, query.remat, false, false}};
  Search by_bytes{counted, query.most_states, Nanos{}};
  Optimum found = by_bytes.run();
  if (!query.addresses && counted.chooses_bytes() && found.feasible &&
      iteration_ends(query.trace, query.machine, query.capacity, found.plan).back() != found.makespan)
    return {.makespan = found.makespan, .plan = {}, .states = found.states};  // the device would choose other bytes
  if (!query.addresses || !found.feasible) return found;
  // On one stream without copies, no plan with addresses is faster than the best plan by counted bytes, and usually
  // there are addresses for that plan. With copies this does not hold: every counted place waits for the bytes that a
  // copy frees, while a place at other addresses is free at once.
  const Nanos least = counted.streams == 1 && !query.swap ? found.makespan : Nanos{};
  const TinyStep placed{query.trace, query.machine, query.capacity, {query.swap, query.remat, true, false}};
  if (const std::optional<std::vector<Move>> moves = find_places(placed, by_bytes.moves())) {
    State state;
    for (const Move& move : *moves) Mover{placed, state}.apply(move);
    if (state.drained(placed) <= std::max(least, baseline_time(query.trace, query.machine.launch))) {
      found.makespan = state.drained(placed);
      found.plan = plan_of(placed, *moves);
      return found;
    }
  }
  Optimum in_places = Search{placed, query.most_states, least}.run();
  in_places.states += found.states;
  return in_places;
}

}  // namespace tidepool
