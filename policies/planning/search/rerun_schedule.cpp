#include "policies/planning/search/rerun_schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "simulator/packing/search/random_numbers.hpp"

namespace tidepool {
namespace {

using Stage = std::int32_t;
using Op = std::uint32_t;

/// A value between two uses by first runs, in stages (`from`, `to`]; `to` is the number of ops behind the last use.
struct RunRange {
  Op value = 0;
  Stage from = 0, to = 0;
};

/// The stages of an interval in which the value is kept before any op of the stage runs: the stages up to `until`, and
/// those after `again`, the stage of its rerun, up to `until_again`. A value that stays is kept after every rerun.
struct Held {
  Stage until = 0, again = 0, until_again = 0;
  bool stays = false;

  bool at(Stage stage) const { return stage <= until || (stage > again && stage <= until_again); }
  bool operator==(const Held&) const = default;
};

struct Run {
  Op op = 0;
  Stage stage = 0;
};

/// The cost of the choices for all intervals.
struct Tried {
  std::vector<Run> runs;
  std::int64_t again = 0;  ///< ns
  double excess = 0;       ///< sum over stages of the most bytes beyond the room, as shares of the room
  Stage worst = -1;        ///< stage with the largest excess
  bool too_often = false;  ///< an op runs more often than allowed

  bool fits() const { return worst < 0; }
};

class Annealing {
 public:
  Annealing(const RerunProblem& problem, const RerunSearch& search)
      : problem_{problem}, search_{search}, ops_{static_cast<Stage>(problem.ops())}, numbers_{search.seed} {
    find_intervals();
    mark_.assign(problem.ops(), -1);
    since_.assign(problem.ops(), ops_);
    forced_.resize(problem.ops());
    position_.resize(problem.ops());
    current_.resize(problem.ops());
    count_.resize(problem.ops());
  }

  std::optional<RerunSchedule> run() {
    Tried now, next;
    evaluate(now);
    note(now);
    if (movable_.empty() || best_enough()) return best_;
    const double mean = mean_cost();
    double price = now.excess > 0 ? mean * static_cast<double>(problem_.ops()) / now.excess : mean;
    int round = 0;
    for (std::int64_t spent = 0; spent < search_.steps && !best_enough();) {
      const double part = static_cast<double>(spent) / static_cast<double>(search_.steps) * kRounds;
      if (static_cast<int>(part) != round && best_) {
        held_ = best_held_;
        evaluate(now);
      }
      round = static_cast<int>(part);
      const double hot = mean * kHot[static_cast<std::size_t>(round) % kHot.size()];
      const double heat = hot * std::pow(mean * kCold / hot, part - round);
      propose(now);
      spent += static_cast<std::int64_t>(now.runs.size());
      if (changes_.empty()) continue;
      swap_changes();
      evaluate(next);
      const double worse = static_cast<double>(next.again - now.again) + price * (next.excess - now.excess);
      if (!next.too_often && (worse <= 0 || numbers_.next() < std::exp(-worse / heat))) {
        std::swap(now, next);
        note(now);
      } else {
        std::reverse(changes_.begin(), changes_.end());
        swap_changes();
      }
      price *= now.fits() ? kCheaper : kDearer;
    }
    return best_;
  }

 private:
  static constexpr int kRounds = 12;                          // each begins with the best state so far
  static constexpr std::array kHot{0.1, 0.2, 0.4, 0.8};       // temperatures at the begin of rounds, in mean op costs
  static constexpr double kCold = 0.001;                      // temperature at the end of rounds
  static constexpr double kCheaper = 0.999, kDearer = 1.002;  // factors of the price after each state
  static constexpr double kStays = 0.7, kHoldInputs = 0.1, kExchange = 0.18;  // probabilities

  struct Change {
    std::size_t interval;
    Held held;
  };
  void swap_changes() {
    for (Change& change : changes_) std::swap(held_[change.interval], change.held);
  }

  void find_intervals() {
    std::vector<std::vector<Stage>> uses(problem_.ops());
    for (Op i = 0; i < problem_.ops(); ++i)
      for (const Op input : problem_.inputs[i]) uses[input].push_back(static_cast<Stage>(i));
    for (Op v = 0; v < problem_.ops(); ++v) {
      first_.push_back(static_cast<std::uint32_t>(intervals_.size()));
      Stage from = static_cast<Stage>(v);
      for (const Stage use : uses[v]) {
        if (use > from + 1 && problem_.bytes[v] > 0) movable_.push_back(intervals_.size());
        intervals_.push_back({v, from, use});
        held_.push_back({use, use, use, false});
        from = use;
      }
      intervals_.push_back({v, from, ops_});
      held_.push_back({from, ops_, ops_, false});
    }
  }

  double mean_cost() const {
    const std::int64_t sum = std::accumulate(problem_.cost.begin(), problem_.cost.end(), std::int64_t{0});
    return std::max(1.0, static_cast<double>(sum) / problem_.ops());
  }

  bool best_enough() const { return best_ && best_->again <= search_.enough; }

  void note(const Tried& outcome) {
    if (!outcome.fits() || outcome.too_often || (best_ && best_->again <= outcome.again)) return;
    best_.emplace();
    best_held_ = held_;
    best_->again = outcome.again;
    for (const Run& run : outcome.runs) best_->runs.push_back(run.op);
  }

  bool held(Op value, Stage stage) const { return held_[current_[value]].at(stage) || stage > since_[value]; }

  void want(Op value, Stage stage) {
    if (mark_[value] == stage) return;
    mark_[value] = stage;
    stage_runs_.push_back(value);
  }

  /// Begins an interval of a value, and schedules its rerun if it has one in the interval.
  void enter(std::uint32_t interval) {
    const RunRange& each = intervals_[interval];
    current_[each.value] = interval;
    since_[each.value] = ops_;
    const Held& held = held_[interval];
    if (held.until < held.again && held.again < each.to)
      forced_[static_cast<std::size_t>(held.again)].push_back(each.value);
  }

  void evaluate(Tried& out) {
    std::fill(mark_.begin(), mark_.end(), -1);
    for (auto& each : forced_) each.clear();
    out.runs.clear();
    out.again = 0;
    for (Stage t = 0; t < ops_; ++t) {
      const Op op = static_cast<Op>(t);
      stage_runs_.clear();
      for (const Op value : forced_[op]) want(value, t);
      for (const Op input : problem_.inputs[op])
        if (!held(input, t)) want(input, t);
      for (std::size_t i = 0; i < stage_runs_.size(); ++i)
        for (const Op input : problem_.inputs[stage_runs_[i]])
          if (!held(input, t)) want(input, t);
      std::sort(stage_runs_.begin(), stage_runs_.end());
      for (const Op value : stage_runs_) {
        out.runs.push_back({value, t});
        out.again += problem_.cost[value];
        if (held_[current_[value]].stays) since_[value] = t;
      }
      out.runs.push_back({op, t});
      enter(first_[op]);
      for (const Op input : problem_.inputs[op]) enter(current_[input] + 1);
    }
    measure(out);
  }

  /// Sums up memory and the number of runs of each op.
  void measure(Tried& out) {
    const std::size_t runs = out.runs.size();
    released_.assign(runs, 0);
    last_.resize(runs);
    std::fill(count_.begin(), count_.end(), 0);
    out.too_often = false;
    for (std::size_t p = 0; p < runs; ++p) {
      const Op op = out.runs[p].op;
      for (const Op input : problem_.inputs[op]) last_[position_[input]] = static_cast<std::uint32_t>(p);
      position_[op] = p;
      last_[p] = static_cast<std::uint32_t>(p);
      if (++count_[op] > problem_.most_runs && problem_.most_runs > 0) out.too_often = true;
    }
    for (std::size_t p = 0; p < runs; ++p) released_[last_[p]] += problem_.bytes[out.runs[p].op];
    std::int64_t bytes = 0, excess = 0, most = 0, most_of_stage = 0;
    out.worst = -1;
    for (std::size_t p = 0; p < runs; ++p) {
      bytes += problem_.bytes[out.runs[p].op];
      if (const std::int64_t over = bytes - problem_.room; over > 0) {
        excess += std::max<std::int64_t>(over - most_of_stage, 0);
        most_of_stage = std::max(over, most_of_stage);
        if (over > most) most = over, out.worst = out.runs[p].stage;
      }
      bytes -= released_[p];
      if (static_cast<Stage>(out.runs[p].op) == out.runs[p].stage) most_of_stage = 0;
    }
    out.excess = static_cast<double>(excess) / static_cast<double>(std::max<std::int64_t>(problem_.room, 1));
  }

  std::size_t any(std::size_t count) { return static_cast<std::size_t>(numbers_.next() * static_cast<double>(count)); }

  static Held kept(const RunRange& interval) { return {interval.to, interval.to, interval.to, false}; }
  Held dropped(const RunRange& interval) {
    return {interval.from, interval.to, interval.to, interval.to < ops_ && numbers_.next() < kStays};
  }
  bool is_kept(std::size_t i) const { return held_[i] == kept(intervals_[i]); }
  std::size_t interval_at(Op value, Stage stage) const {
    std::size_t i = first_[value];
    while (intervals_[i].to < stage) ++i;
    return i;
  }

  /// Proposes a change of one or more intervals, in `changes_`; empty if there is none.
  void propose(const Tried& now) {
    changes_.clear();
    const double kind = numbers_.next();
    if (!now.fits() && kind < 0.3)
      drop_at(now.worst);
    else if (kind < 0.55)
      toggle();
    else
      hold_for_rerun(now, kind);
    if (changes_.empty()) return;
    if (held_[changes_[0].interval] == changes_[0].held) return changes_.clear();
    const double more = numbers_.next();
    if (more < kHoldInputs)
      hold_inputs();
    else if (more < kHoldInputs + kExchange)
      exchange();
  }

  void toggle() {
    const std::size_t i = movable_[any(movable_.size())];
    const RunRange& interval = intervals_[i];
    if (numbers_.next() < 0.3) {
      Held back = dropped(interval);
      back.again = interval.from + 1 + static_cast<Stage>(any(static_cast<std::size_t>(interval.to - interval.from)));
      changes_.push_back({i, back});
    } else {
      changes_.push_back({i, is_kept(i) ? dropped(interval) : kept(interval)});
    }
  }

  /// Drops a value that is kept in a stage and not used there; it may be rerun before its next use.
  void drop_at(Stage stage) {
    for (int tries = 0; tries < 30; ++tries) {
      const std::size_t i = movable_[any(movable_.size())];
      const RunRange& interval = intervals_[i];
      if (interval.from >= stage || stage >= interval.to || !held_[i].at(stage)) continue;
      Held back = dropped(interval);
      if (numbers_.next() < 0.5) {
        const double far = numbers_.next();
        back.again = std::min(interval.to, stage + 1 + static_cast<Stage>(far * far * (interval.to - stage)));
      }
      changes_.push_back({i, back});
      return;
    }
  }

  /// Keeps the inputs of a value until its rerun.
  void hold_inputs() {
    const auto [i, held] = changes_[0];
    if (held.until >= held.again || held.again >= ops_) return;
    for (const Op input : problem_.inputs[intervals_[i].value]) {
      const std::size_t k = interval_at(input, held.again);
      if (held_[k].at(held.again)) continue;
      changes_.push_back({k, hold_until(k, held.again)});
    }
  }

  Held hold_until(std::size_t i, Stage stage) const {
    Held longer = held_[i];
    if (stage == intervals_[i].to) return kept(intervals_[i]);
    longer.until = stage;
    if (longer.again <= stage) longer.again = longer.until_again = intervals_[i].to;
    return longer;
  }

  /// Exchanges two values at the same time: keeps the second where the first is dropped, and drops it where that is
  /// kept.
  void exchange() {
    const auto [i, held] = changes_[0];
    const RunRange& one = intervals_[i];
    const bool drops = held.until == one.from;
    for (int tries = 0; tries < 20; ++tries) {
      const std::size_t k = movable_[any(movable_.size())];
      const RunRange& other = intervals_[k];
      if (k == i || other.from >= one.to || other.to <= one.from || is_kept(k) == drops) continue;
      changes_.push_back({k, drops ? kept(other) : dropped(other)});
      return;
    }
  }

  /// Changes the interval around a rerun: the value is kept from the use before it, or until the next need after it, or
  /// no longer, or it is rerun earlier.
  void hold_for_rerun(const Tried& now, double kind) {
    if (now.runs.size() == problem_.ops()) return;
    std::size_t p = 0;
    for (int tries = 0; tries < 1'000; ++tries) {
      p = any(now.runs.size());
      if (static_cast<Stage>(now.runs[p].op) != now.runs[p].stage) break;
    }
    const Run run = now.runs[p];
    if (static_cast<Stage>(run.op) == run.stage) return;
    const std::size_t i = interval_at(run.op, run.stage);
    const RunRange& interval = intervals_[i];
    Held held = held_[i];
    if (kind < 0.7) {  // held until this stage: it need not run again here
      held = hold_until(i, run.stage);
    } else if (kind < 0.92) {  // held from this run to the end of the interval, or to the next run
      held.again = run.stage;
      held.until_again = kind >= 0.85 || interval.to == ops_ ? next_run(now, p, interval.to) : interval.to;
      if (held.until_again == ops_ || run.stage >= held.until_again) return;
    } else if (kind < 0.94) {
      held = dropped(interval);
    } else {
      const Stage lowest = std::max(held.until, interval.from) + 1;
      if (lowest >= run.stage || interval.to == ops_) return;
      const double far = numbers_.next();
      held.again = run.stage - 1 - static_cast<Stage>(far * far * far * (run.stage - lowest));
      held.until_again = interval.to;
    }
    changes_.push_back({i, held});
  }

  /// The stage, up to `to`, of the next run of the op that runs at position `p`; ops_ if there is none.
  Stage next_run(const Tried& now, std::size_t p, Stage to) const {
    const Op op = now.runs[p].op;
    for (std::size_t q = p + 1; q < now.runs.size() && now.runs[q].stage <= to; ++q)
      if (now.runs[q].op == op) return now.runs[q].stage;
    return ops_;
  }

  const RerunProblem& problem_;
  const RerunSearch& search_;
  Stage ops_;
  RandomNumbers numbers_;
  std::vector<RunRange> intervals_;
  std::vector<Held> held_;       // by interval
  std::vector<Held> best_held_;  // of best_
  std::vector<Change> changes_;
  std::vector<std::uint32_t> first_;  // by value: its first interval
  std::vector<std::size_t> movable_;  // intervals in which a drop frees memory
  std::optional<RerunSchedule> best_;
  // Of evaluate():
  std::vector<Stage> since_;             // by value that stays: the stage of its rerun in its interval; ops_: none
  std::vector<Stage> mark_;              // by value: the last stage in which it is rerun
  std::vector<std::vector<Op>> forced_;  // by stage: values to rerun there
  std::vector<std::uint32_t> current_;   // by value: interval
  std::vector<Op> stage_runs_;
  std::vector<std::size_t> position_;   // by value: its last run
  std::vector<std::int32_t> count_;     // by op: runs
  std::vector<std::uint32_t> last_;     // by run: the last run that reads its value
  std::vector<std::int64_t> released_;  // by run: bytes that are freed after it
};

}  // namespace

std::optional<RerunSchedule> search_reruns(const RerunProblem& problem, const RerunSearch& search) {
  return Annealing{problem, search}.run();
}

}  // namespace tidepool
