// The state of a partial plan, and the effect of one move on it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simulator/plan.hpp"
#include "tests/oracle/free_bytes.hpp"
#include "tests/oracle/shared_link.hpp"
#include "tests/oracle/tiny_step.hpp"

namespace tidepool::optimum {

enum class MoveKind : std::uint8_t {
  kBeginOnDevice,  ///< version `subject` from before the step has a place when the step begins
  kBeginOnHost,    ///< version `subject` from before the step is only on the host when the step begins
  kSwapOut,
  kSwapIn,
  kAlloc,  ///< version `subject` gets an empty place before its op runs, or one with undefined content
  kRun,    ///< op `subject` runs
  kAwait,  ///< the stream of the next op waits for the copies of version `subject`
  kNext,   ///< the next iteration begins
};

/// The place to which a run writes one of its outputs.
enum class Writes : std::uint8_t {
  kOwnPlace,   ///< to an empty place of its own
  kTakesOver,  ///< to the place of the version that it replaces, which is then gone
  kScratch,    ///< it has content already: to a place that ends with the run
  kOver,       ///< it has content already: over the version that it replaces, whose place ends with the run
};

/// One decision, with the drops that make room for it.
struct Move {
  MoveKind kind = MoveKind::kRun;
  std::uint8_t subject = 0;
  std::array<Writes, kMostOutputs> writes = {};         ///< kRun: by output
  std::array<std::uint8_t, kMostOutputs> unit_at = {};  ///< first units of places, by output; [0] for other kinds
  Set drops = 0;
  Bytes leaves = {};  ///< if places choose bytes: free bytes that may be written sooner, and that are left to others
  /// Versions that are freed at the move's end, and whether they are known. They are found when the move is applied for
  /// the first time; the same move applied later frees the same versions.
  Set frees = 0;
  bool frees_decided = false;
};

/// Times are those of the Timeline after the moves so far. Times up to base() are equivalent. A time that depends on a
/// copy whose end is not known yet is a mark, see SharedLink.
struct State {
  Set placed = 0, filled = 0;  ///< placed includes filled
  Set on_host = 0;
  Set may_stay = 0;           ///< outputs that need not be on the device when the step ends
  std::uint8_t position = 0;  ///< number of ops of the program that have run
  std::uint8_t begun = 0;     ///< number of initial versions whose place at the beginning is decided
  bool repeated = false;      ///< this is not the first iteration
  std::array<Nanos, kMostStreams> stream = {};
  Nanos h2d, d2h, host;
  Nanos counted_free_from;  ///< without addresses, on one stream: time from which places that begin now may be written
  FreeBytes free;           ///< without addresses, on several streams
  std::array<Nanos, kMostVersions> ready = {}, last_use = {}, host_ready = {};
  std::array<Nanos, kMostOps> op_end = {};
  std::array<std::uint8_t, kMostVersions> unit_at = {};
  std::array<Nanos, kMostUnits> free_from = {};  ///< with addresses: the same, by unit

  SharedLink link;  ///< only used if its directions slow each other down

  /// The earliest time at which anything may still begin.
  Nanos base(const TinyStep& step) const;
  /// The time at which all lanes are done.
  Nanos drained(const TinyStep& step) const;
  /// Makes all times earlier by `by`.
  void shift(Nanos by);
  /// Whether the step may end here: every output is on the device, or on the host if it may be there, and none has an
  /// empty place.
  bool ended(const TinyStep& step) const {
    return position == step.ops() && (step.outputs & placed & ~filled) == 0 &&
           (step.outputs & ~filled & ~((step.freedom.steady ? ~Set{0} : may_stay) & on_host)) == 0;
  }
};

/// Applies moves with the times of the Timeline. Moves are not checked.
class Mover {
 public:
  /// @param actions  receives the plan's actions; nullptr if they are not wanted
  Mover(const TinyStep& step, State& state, std::vector<Action>* actions = nullptr)
      : step_{step}, s_{state}, actions_{actions} {}

  /// @return  the versions that the move frees at its end
  Set apply(const Move& move);
  /// In a later iteration, skips versions from before the step whose place the previous iteration has decided.
  void skip_carried();

 private:
  void emit(Verb verb, std::size_t subject, std::size_t unit_at = 0);
  void give_place(std::size_t v, Nanos free_from, std::size_t unit_at);
  void end_place(std::size_t v);
  void drop(std::size_t v);
  Set dead() const;
  void swap_out(std::size_t v);
  void swap_in(std::size_t v, const Move& move);
  void copy(std::size_t v, std::size_t parent);
  void run(const Move& move);
  Nanos give_outputs_places(const TinyOp& op, const Move& move);
  Nanos start_of(std::size_t k, const Move& move, Nanos places_free);
  void await(std::size_t v);
  void next_iteration();
  Nanos known(Nanos time) { return step_.disturbed ? resolve(step_, s_, time) : time; }
  Nanos claim(std::size_t v, const Move& move, std::size_t output = 0);
  void let_go(std::size_t v, std::size_t unit_at, Nanos from);
  Nanos now() const;

  const TinyStep& step_;
  State& s_;
  std::vector<Action>* actions_;
};

}  // namespace tidepool::optimum
