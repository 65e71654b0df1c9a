// The state of a search for reruns: choices for the values of a step, with the schedule and the memory that follow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/planning/search/rerun_schedule.hpp"

namespace tidepool {

/// Choices for all intervals between uses of values, and the schedule that follows from them. Stage i goes from the end
/// of the first run of op i - 1 to the end of that of op i: ops that run again, in their order, then op i. A change of
/// choices updates only the stages that it affects. O(stages) for the sum of bytes, and little more.
class RerunState {
 public:
  using Stage = std::int32_t;
  using Op = std::uint32_t;

  /// The interval between two uses of a value by first runs, as stages (`from`, `to`]; `to` is the number of ops after
  /// the last use.
  struct Interval {
    Op value = 0;
    Stage from = 0, to = 0;
  };
  /// The stages of an interval that begin with the value held: those up to `until`, and those after `again` up to
  /// `until_again`; the op of the value reruns in stage `again`. With `stays`, the value is also held after any rerun.
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
    double excess = 0;       ///< sum over stages of the most bytes beyond the room, in rooms
    Stage worst = -1;        ///< stage with the largest excess; -1: all fits
    bool too_often = false;  ///< an op runs more often than it may

    bool fits() const { return worst < 0; }
  };

  /// Initially each value is held from the first run of its op to its last use.
  /// @param problem  outlives the state
  explicit RerunState(const RerunProblem& problem);

  std::span<const Interval> intervals() const { return intervals_; }
  /// The interval of a value in which a stage lies. The value's first run is in an earlier stage.
  std::uint32_t interval_at(Op value, Stage stage) const;
  /// The choice to hold a value throughout an interval.
  static Held kept(const Interval& interval) { return {interval.to, interval.to, interval.to, false}; }
  std::span<const Held> held() const { return held_; }
  const Totals& totals() const { return totals_; }
  /// All reruns, in no particular order.
  std::span<const Rerun> reruns() const { return reruns_; }
  /// The first stage after `stage` in which an op runs again; the number of ops if there is none.
  Stage next_rerun(Op op, Stage stage) const;
  /// All runs, in order.
  std::vector<Op> runs() const;

  /// Number of ops and values visited so far, as a measure of effort.
  std::int64_t work() const { return work_; }

  /// Applies the changes, in order. Afterwards each change contains the state before it.
  void exchange(std::span<Change> changes);

 private:
  struct Again {
    Stage stage = 0;
    std::uint32_t index = 0;  // in reruns_
  };
  /// The content that one run of an op makes: from the stage of the run to the stage of its last read.
  struct Life {
    Stage made = 0, last = 0;
    bool operator==(const Life&) const = default;
  };
  class Stages {
   public:
    void reset(std::size_t stages) { words_.assign(stages / 64 + 1, 0); }
    void add(Stage stage) { words_[static_cast<std::size_t>(stage) / 64] |= std::uint64_t{1} << (stage % 64); }
    /// Visits and removes the stages in ascending order; stages that are added meanwhile must come later.
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
  std::vector<std::vector<Op>> forced_;      // by stage: values that choices (`again`) make there
  std::vector<std::vector<Op>> stage_runs_;  // by stage: ops that run again
  std::vector<std::vector<Again>> again_;    // by op: the stages in which it runs again
  std::vector<std::vector<Stage>> reads_;    // by value: stages in which rerun ops read it, one for each op
  std::vector<std::vector<Life>> lives_;     // by value
  std::vector<Rerun> reruns_;
  std::vector<std::int64_t> carried_;  // by stage: change of bytes made before it and read in it or later
  std::vector<std::int64_t> local_;    // by stage: most bytes beside these
  Totals totals_;
  std::int32_t too_often_ = 0;  // number of ops that run too often
  std::int64_t work_ = 0;
  Stages unscheduled_, unmeasured_;
  std::vector<Op> touched_;
  std::vector<bool> is_touched_;      // by value
  std::vector<std::uint32_t> marks_;  // by value
  std::uint32_t mark_ = 0;
  std::vector<Op> wanted_, order_;
  std::vector<std::int64_t> released_;  // by run of a stage: bytes that end with it
  std::vector<Life> found_;
};

}  // namespace tidepool
