// Moves that can continue a partial plan.
#pragma once

#include <vector>

#include "tests/oracle/state.hpp"

namespace tidepool::optimum {

/// Every move that may lead to a plan of least time. Moves are left out if another plan is at least as good: a place
/// ends only if its memory is needed, no more places end than needed, and only needed versions are brought back. If
/// places choose bytes (see FreeBytes), there are such moves for every time from which the chosen bytes may be written.
/// O(moves).
class Choices {
 public:
  explicit Choices(const TinyStep& step) : step_{step} {}

  /// The moves from `state`; valid until the next call.
  /// @param fresh  versions that the last run made, see Purpose::fresh
  const std::vector<Move>& of(const State& state, Set fresh);

 private:
  void begin();
  void swap();
  void alloc_undefined();
  void alloc_early();
  void await();
  void run(std::size_t k);
  void choose_writes(Move& move, std::size_t output);
  void make_room(Move move, Bytes wanted, Set kept);
  template <class Add>
  void choose_drops(Move& move, Set from, Bytes missing, Add add) const;
  void choose_bytes(Move& move, Bytes wanted, Set may_go);
  Nanos first_use(const Move& move) const;
  void choose_places(Move& move, std::size_t output, Set kept);
  void place_one(Move move, std::size_t v, Set kept);
  template <class Visit>
  void for_each_place(std::size_t v, Set kept, Set taken, const Move& move, Visit visit) const;
  void add(const Move& move) { moves_.push_back(move); }
  Set kept_for_pending() const;
  bool is_coming(std::size_t v) const;
  Set droppable(Set kept) const;
  bool still_used(Set set) const;
  Set worth_leaving() const;

  const TinyStep& step_;
  const State* s_ = nullptr;
  Set fresh_ = 0;
  std::vector<Move> moves_;
};

/// Whether a copy from the host could have been issued after the run that has just ended instead of before it. The plan
/// in which it is issued after the run is better, since the version then takes memory later.
bool came_too_early(const TinyStep& step, const State& state);

/// Whether all versions that the rest of the step needs are resident, on the host, or can be recomputed from these.
bool recoverable(const TinyStep& step, const State& state);

}  // namespace tidepool::optimum
