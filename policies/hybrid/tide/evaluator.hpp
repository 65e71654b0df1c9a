// The time of a step under given treatments of its idle intervals, and the schedule of its copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "policies/hybrid/tide/copy_lanes.hpp"
#include "policies/hybrid/tide/recomputation.hpp"
#include "policies/hybrid/tide/slot_tree.hpp"
#include "policies/hybrid/tide/step_model.hpp"
#include "policies/hybrid/tide/treatment.hpp"
#include "policies/planning/gaps/gap_draft.hpp"

namespace tidepool {

/// A copied idle interval in an evaluated schedule.
struct EvaluatedCopy {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t gap = 0;
  std::uint32_t release = 0, due = 0;  ///< due: earlier than that of the interval if a recomputation reads the content
  std::uint32_t out_from = 0;          ///< the op before which its swap-out may begin
  bool ahead = false;                  ///< its swap-out is for the next iteration, since `out_from` follows the release
  bool swaps_out = false;              ///< false: the host has the content already, or gets it from `source`
  std::uint32_t source = kNone;        ///< the copy whose swap-out gives the host the content; none: the host has it
  std::uint32_t issue = kNone;         ///< position of its swap-in
  std::uint32_t out_op = kNone;        ///< op before which its swap-out begins
  Nanos out_begins = {};               ///< time at which its swap-out begins
};

/// What the evaluator finds for a plan.
struct Evaluation {
  static constexpr Nanos kImpossible{std::numeric_limits<std::int64_t>::max()};
  Nanos period = kImpossible;         ///< time of an iteration, with that of bytes above the capacity
  Bytes most_over;                    ///< most bytes above the capacity
  std::uint32_t overs = 0;            ///< ops with bytes above the capacity
  std::vector<Nanos> start;           ///< by op: counted from the end of the iteration before; last: the period
  std::vector<EvaluatedCopy> copies;  ///< in the order of releases

  bool possible() const { return period != kImpossible; }
};

/// A list schedule of a repeated step by counted bytes: ops in program order with recomputations before them; swap-outs
/// in the order of releases as soon as the content is made; swap-ins in the order of due ops, as early as they fit into
/// the memory until they are due. Where bytes exceed the capacity although all swap-outs have ended, the op waits 1 ns
/// for every 25 B. An iteration begins when the swap-outs of released content have ended. The second of two iterations
/// counts, or the first if the step is not repeated. Times are estimates; runs of the engine decide.
/// O(ops + intervals log ops).
class Evaluator {
 public:
  /// @param model  outlives the evaluator
  explicit Evaluator(const StepModel& model);

  /// The result is valid until the next call. A plan that takes longer than `longest` may be said to be impossible.
  const Evaluation& evaluate(const Treatments& treatments, Nanos longest = Evaluation::kImpossible);
  const Evaluation& last() const { return result_; }
  /// Plans for less memory than the capacity of the model.
  void set_capacity(Bytes capacity) { capacity_ = capacity; }
  Bytes capacity() const { return capacity_; }
  /// When a draft issues swap-ins: as early as in the evaluation, or as late as the lane allows, which leaves more room
  /// in pools that fragment.
  enum class SwapIns : std::uint8_t { kEarly, kLate };
  /// The plan of the last evaluation, which used these treatments, as actions.
  GapDraft draft(const Treatments& treatments, SwapIns swap_ins) const;
  /// By slot: bytes of content that recomputations bring back before it is due, and bytes that they need, in the last
  /// evaluation.
  std::vector<Bytes> recomputation_bytes(const Treatments& treatments) const;
  /// These bytes, and those of swap-ins before they are due.
  std::vector<Bytes> early_bytes(const Treatments& treatments) const;
  const Recomputation& recomputation() const { return recomputation_; }
  std::int64_t evaluations() const { return evaluations_; }

 private:
  enum class State : std::uint8_t { kAway, kLeaving, kOnHost, kComing, kBack };
  struct Queued {
    std::int64_t key;    ///< the swap-out's release, or the swap-in's due position, counted over iterations
    std::uint32_t copy;  ///< index into Evaluation::copies
    std::int64_t iteration;
    bool operator<(const Queued& other) const {  // for heaps whose front has the least key
      return key != other.key ? key > other.key : copy > other.copy;
    }
  };
  struct Live {
    State state = State::kAway;
    std::int64_t due = -1;                             ///< position over iterations
    std::int64_t came_in = 0;                          ///< slot in which its swap-in began
    std::int64_t out_done = -1;                        ///< last iteration whose swap-out has ended
    Nanos back;                                        ///< end of its swap-in
    std::uint32_t serves = EvaluatedCopy::kNone;       ///< a copy whose content its swap-out brings to the host
    std::uint32_t next_served = EvaluatedCopy::kNone;  ///< another one that the same swap-out serves
  };

  void list_copies(const Treatments& treatments);
  void find_loads(const Treatments& treatments);
  void add_undrained();
  void order_copies();
  void simulate(Nanos longest);
  void run_op(std::uint32_t op, std::int64_t iteration);
  void settle_arrivals(std::uint32_t op);
  void drain();
  void bring_due(std::uint32_t op);
  void make_fit(std::uint32_t op);
  void release_after(std::uint32_t op, std::int64_t iteration);
  bool swapping_out() const { return lanes_.copy(CopyLanes::kOut) != CopyLanes::kIdle || !outs_.empty(); }
  void finish_swap_out();
  void queue_out(std::uint32_t copy, std::int64_t iteration);
  void queue_in(std::uint32_t copy);
  void begin_out();
  void begin_in_if_fits();
  void begin_in(std::uint32_t copy);
  void end_out(std::uint32_t copy);
  void next_event(Nanos limit);
  void issue_late(const std::vector<Gap>& gaps, std::vector<PlannedGap>& planned) const;
  void advance(Nanos time);

  const StepModel& model_;
  Recomputation recomputation_;
  Bytes capacity_;
  std::int64_t evaluations_ = 0;
  Evaluation result_;
  std::vector<std::uint32_t> first_out_;             // by version: scratch of list_copies()
  std::vector<Bytes> load_, with_leaving_, change_;  // by slot
  std::vector<std::uint32_t> by_due_, by_out_;
  enum class Out : std::uint8_t { kDone, kQueued, kLeaving };
  std::vector<Out> out_;  // scratch of add_undrained(), as the next three
  std::vector<std::uint32_t> released_, leaves_, queue_;
  SlotTree room_;
  CopyLanes lanes_;
  std::vector<Live> live_;
  std::vector<Queued> outs_, ins_;
  std::size_t next_due_ = 0, next_release_ = 0, next_out_ = 0;
  Bytes coming_, leaving_, leaving_at_begin_;
  std::uint32_t leaving_count_ = 0;
  std::int64_t slot_ = 0, out_iteration_ = 0;
  Nanos time_, iteration_began_;
  bool counts_ = false;  // the iteration that is counted
  std::int64_t room_version_ = 0, head_version_ = -1, head_from_ = 0;
  std::uint32_t head_ = EvaluatedCopy::kNone;
  std::int64_t outs_ended_ = 0;
};

}  // namespace tidepool
