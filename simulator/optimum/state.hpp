// The state of a partial plan, and what one move makes of it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simulator/optimum/shared_link.hpp"
#include "simulator/optimum/tiny_step.hpp"
#include "simulator/plan.hpp"

namespace tidepool::optimum {

enum class MoveKind : std::uint8_t {
  kBeginOnDevice,  ///< version `subject` from before the step has a place when the step begins
  kBeginOnHost,    ///< it does not
  kSwapOut,
  kSwapIn,
  kAlloc,  ///< version `subject` gets an empty place before its op runs, or one with undefined content
  kRun,    ///< op `subject` runs
  kAwait,  ///< its stream waits for the copies of version `subject`
  kNext,   ///< the next iteration begins
};

/// Where a run writes one of its outputs.
enum class Writes : std::uint8_t {
  kOwnPlace,   ///< to an empty place of its own
  kTakesOver,  ///< to the place of the version that it replaces, which is gone then
  kScratch,    ///< it has content already: to a place that ends with the run
  kOver,       ///< it has content already: over the version that it replaces, whose place ends with the run
};

/// One decision, with the drops that make room for it.
struct Move {
  MoveKind kind = MoveKind::kRun;
  std::uint8_t subject = 0;
  std::array<Writes, kMostOutputs> writes = {};         ///< kRun: by output
  std::array<std::uint8_t, kMostOutputs> unit_at = {};  ///< where places begin, by output; [0] for other kinds
  Set drops = 0;
  /// What is freed at its end, and whether that has been decided: when it is made for the first time, from what is still
  /// in use then. Made again later in other times, it frees the same.
  Set frees = 0;
  bool frees_decided = false;
};

/// Times are those of the Timeline after the moves so far; whatever is not later than base() makes no difference. Times
/// that wait for a copy whose end is not known are marks, see SharedLink.
struct State {
  Set placed = 0, filled = 0;  ///< placed includes filled
  Set on_host = 0;
  Set may_stay = 0;           ///< outputs that need not be on the device when the step ends
  std::uint8_t position = 0;  ///< ops of the program that have run
  std::uint8_t begun = 0;     ///< versions from before the step for which it is decided where they begin
  bool repeated = false;      ///< this is not the first iteration
  std::array<Nanos, kMostStreams> stream = {};
  Nanos h2d, d2h, host;
  Nanos counted_free_from;  ///< without addresses: when places that begin now may be written
  std::array<Nanos, kMostVersions> ready = {}, last_use = {}, host_ready = {};
  std::array<Nanos, kMostOps> op_end = {};
  std::array<std::uint8_t, kMostVersions> unit_at = {};
  std::array<Nanos, kMostUnits> free_from = {};  ///< with addresses: likewise, by unit

  SharedLink link;  ///< if its directions slow each other down

  /// The earliest time at which anything may still begin.
  Nanos base(const TinyStep& step) const;
  /// When all lanes are done.
  Nanos drained(const TinyStep& step) const;
  /// Lets all times be `shift` earlier.
  void shift(Nanos by);
  /// Whether the step may end here: what it hands on is there, and not in place of it an empty place.
  bool ended(const TinyStep& step) const {
    return position == step.ops() && (step.outputs & placed & ~filled) == 0 &&
           (step.outputs & ~filled & ~((step.freedom.steady ? ~Set{0} : may_stay) & on_host)) == 0;
  }
};

/// Carries moves out as the Timeline prices them. Moves are trusted.
class Mover {
 public:
  /// @param actions  where the plan goes, if it is wanted
  Mover(const TinyStep& step, State& state, std::vector<Action>* actions = nullptr)
      : step_{step}, s_{state}, actions_{actions} {}

  /// @return  what it has freed at its end
  Set apply(const Move& move);
  /// Where what lives through the step begins was decided in the iteration before.
  void skip_carried();

 private:
  void emit(Verb verb, std::size_t subject, std::size_t unit_at = 0);
  void give_place(std::size_t v, std::size_t unit_at);
  void end_place(std::size_t v);
  void drop(std::size_t v);
  Set dead() const;
  void swap_out(std::size_t v);
  void swap_in(std::size_t v, std::size_t unit_at);
  void copy(std::size_t v, std::size_t parent);
  void run(const Move& move);
  void give_outputs_places(const TinyOp& op, const Move& move);
  Nanos start_of(std::size_t k, const Move& move);
  void await(std::size_t v);
  void next_iteration();
  Nanos known(Nanos time) { return step_.disturbed ? resolve(step_, s_, time) : time; }
  Nanos claim(std::size_t v, std::size_t unit_at);
  void let_go(std::size_t v, std::size_t unit_at, Nanos from);
  Nanos now() const;

  const TinyStep& step_;
  State& s_;
  std::vector<Action>* actions_;
};

}  // namespace tidepool::optimum
