// The schedule that choices for the values of a step lead to: the ops that run again, and the memory in use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/planning/search/rerun_schedule.hpp"

namespace tidepool {

/// Choices for all intervals between uses of values, and the schedule that follows from them. A stage is what runs from
/// the first run of an op (not included) to that of the next one: ops that run again in their order, then the next op.
/// A change of choices updates only the stages that it reaches. O(stages) for the sum of bytes, and little more.
class RerunState {
 public:
  using Stage = std::int32_t;
  using Op = std::uint32_t;

  /// A value between two uses by first runs, in stages (`from`, `to`]; `to` is the number of ops after the last use.
  struct Interval {
    Op value = 0;
    Stage from = 0, to = 0;
  };
  /// In which stages of an interval the value is held before any op of the stage runs: those up to `until`, and those
  /// after `again`, in which it is made, up to `until_again`. One that stays is held from any run again on.
  struct Held {
    Stage until = 0, again = 0, until_again = 0;
    bool stays = false;

    bool at(Stage stage) const { return stage <= until || (stage > again && stage <= until_again); }
    bool operator==(const Held&) const = default;
  };
  struct Change {
    std::uint32_t interval = 0;
    Held held;
  };
  struct Rerun {
    Op op = 0;
    Stage stage = 0;
  };
  struct Totals {
    std::int64_t again = 0;  ///< ns of all reruns
    double excess = 0;       ///< most bytes beyond the room in each stage, in all, as shares of the room
    Stage worst = -1;        ///< stage with the largest excess; -1: all fits
    bool too_often = false;  ///< an op runs more often than it may

    bool fits() const { return worst < 0; }
  };

  /// All values are held from their first use to their last one.
  /// @param problem  outlives the state
  explicit RerunState(const RerunProblem& problem);

  std::span<const Interval> intervals() const { return intervals_; }
  /// The interval of a value, made before the stage, that a stage lies in.
  std::uint32_t interval_at(Op value, Stage stage) const;
  /// A value is held all the time up to its last use, and not after it.
  static Held kept(const Interval& interval) { return {interval.to, interval.to, interval.to, false}; }
  std::span<const Held> held() const { return held_; }
  const Totals& totals() const { return totals_; }
  /// In no particular order.
  std::span<const Rerun> reruns() const { return reruns_; }
  /// The first stage after `stage` in which an op runs again; the number of ops if there is none.
  Stage next_rerun(Op op, Stage stage) const;
  /// All runs, in order.
  std::vector<Op> runs() const;

  /// Ops and values visited so far, a measure of effort.
  std::int64_t work() const { return work_; }

  /// Makes the changes, in order. Afterwards each of them has what was there before.
  void exchange(std::span<Change> changes);

 private:
  struct Again {
    Stage stage = 0;
    std::uint32_t index = 0;  // in reruns_
  };
  /// The content that a run of an op makes, from the stage of the run to that of the last read.
  struct Life {
    Stage made = 0, last = 0;
    bool operator==(const Life&) const = default;
  };
  class Stages {
   public:
    void reset(std::size_t stages) { words_.assign(stages / 64 + 1, 0); }
    void add(Stage stage) { words_[static_cast<std::size_t>(stage) / 64] |= std::uint64_t{1} << (stage % 64); }
    /// Takes out the stages in ascending order; those added in the meantime must come later.
    template <class Visit>
    void take(Visit visit);

   private:
    std::vector<std::uint64_t> words_;
  };

  bool is_held(Op value, Stage stage) const;
  bool is_forced(std::uint32_t interval) const;
  void look_again(Op value, Stage after, Stage to);
  void choose(std::uint32_t interval, Held& held);
  void want(Op value);
  void schedule(Stage stage);
  void run_again(Op op, Stage stage);
  void run_no_more(Op op, Stage stage);
  void touch(Op value);
  void find_lives(Op value);
  bool ends(Op value, Stage stage) const;
  void measure(Stage stage);
  void add_up();

  const RerunProblem& problem_;
  Stage ops_;
  std::vector<Interval> intervals_;
  std::vector<Held> held_;                   // by interval
  std::vector<std::uint32_t> first_;         // by value: its first interval
  std::vector<std::vector<Stage>> uses_;     // by value: stages in which first runs read it
  std::vector<std::vector<Op>> forced_;      // by stage: values to be made there
  std::vector<std::vector<Op>> stage_runs_;  // by stage: ops that run again
  std::vector<std::vector<Again>> again_;    // by op: when it runs again
  std::vector<std::vector<Stage>> reads_;    // by value: stages in which ops that run again read it, one for each
  std::vector<std::vector<Life>> lives_;     // by value
  std::vector<Rerun> reruns_;
  std::vector<std::int64_t> carried_;  // by stage: change of what is there before it and read in it or later, bytes
  std::vector<std::int64_t> local_;    // by stage: most bytes beside that
  Totals totals_;
  std::int32_t too_often_ = 0;  // ops
  std::int64_t work_ = 0;
  Stages unscheduled_, unmeasured_;
  std::vector<Op> touched_;
  std::vector<bool> is_touched_;      // by value
  std::vector<std::uint32_t> marks_;  // by value
  std::uint32_t mark_ = 0;
  std::vector<Op> wanted_, order_;
  std::vector<std::int64_t> released_;  // by run of a stage
  std::vector<Life> found_;
};

}  // namespace tidepool
