#include "policies/planning/search/rerun_schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "policies/planning/search/rerun_state.hpp"
#include "simulator/solvers/packing/search/random_numbers.hpp"

namespace tidepool {
namespace {

class Annealing {
  using Stage = RerunState::Stage;
  using Op = RerunState::Op;
  using Interval = RerunState::Interval;
  using Held = RerunState::Held;
  using Totals = RerunState::Totals;

 public:
  Annealing(const RerunProblem& problem, const RerunSearch& search)
      : problem_{problem},
        search_{search},
        ops_{static_cast<Stage>(problem.ops())},
        numbers_{search.seed},
        state_{problem},
        around_(problem.ops()) {
    for (std::uint32_t i = 0; i < state_.intervals().size(); ++i) {
      const Interval& interval = state_.intervals()[i];
      if (interval.to == ops_ || interval.to <= interval.from + 1 || problem.bytes[interval.value] == 0) continue;
      movable_.push_back(i);
      for (Stage t = interval.from + 1; t < interval.to; ++t) around_[static_cast<std::size_t>(t)].push_back(i);
    }
  }

  std::optional<RerunSchedule> run() {
    const std::vector<Held> initial{state_.held().begin(), state_.held().end()};
    Found best;
    const auto starts = static_cast<int>(std::clamp<std::int64_t>(search_.steps / kStepsOfStart, 1, kMostStarts));
    const double of_start = kShareOfStarts / starts * static_cast<double>(search_.steps);
    for (int start = 1; start <= starts && !enough(best); ++start) {
      return_to(initial);
      found_ = {};
      anneal(static_cast<std::int64_t>(of_start * start), kRoundsOfStart);
      if (!best.schedule || (found_.schedule && found_.schedule->again < best.schedule->again)) best = found_;
    }
    found_ = best;
    if (found_.schedule) return_to(found_.held);
    anneal(search_.steps, kRounds);
    return found_.schedule;
  }

 private:
  struct Found {
    std::optional<RerunSchedule> schedule;
    std::vector<Held> held;  // by interval
  };

  /// The result of a search depends more on its start than on its length. So many short searches come first, then one
  /// from the best of their states.
  static constexpr std::int64_t kStepsOfStart = 1'000'000;  // for each start, at least
  static constexpr int kMostStarts = 24;
  static constexpr double kShareOfStarts = 0.75;
  static constexpr int kRoundsOfStart = 4, kRounds = 12;      // each begins with the best state so far
  static constexpr std::array kHot{0.1, 0.2, 0.4, 0.8};       // temperatures at the start of rounds, in mean op costs
  static constexpr double kCold = 0.001;                      // temperature at the end of rounds
  static constexpr double kCheaper = 0.999, kDearer = 1.002;  // factors of the price after each state
  static constexpr double kStays = 0.7, kHoldInputs = 0.1, kExchange = 0.18;  // probabilities

  double mean_cost() const {
    const std::int64_t sum = std::accumulate(problem_.cost.begin(), problem_.cost.end(), std::int64_t{0});
    return std::max(1.0, static_cast<double>(sum) / problem_.ops());
  }

  bool enough(const Found& found) const { return found.schedule && found.schedule->again <= search_.enough; }

  void note() {
    const Totals& totals = state_.totals();
    if (!totals.fits() || totals.too_often || (found_.schedule && found_.schedule->again <= totals.again)) return;
    found_.held.assign(state_.held().begin(), state_.held().end());
    found_.schedule = {state_.runs(), totals.again};
  }

  void return_to(const std::vector<Held>& held) {
    changes_.clear();
    for (std::uint32_t i = 0; i < held.size(); ++i)
      if (held[i] != state_.held()[i]) changes_.push_back({i, held[i]});
    state_.exchange(changes_);
  }

  /// Anneals from the current state until the effort of all searches so far is `until`.
  void anneal(std::int64_t until, int rounds) {
    note();
    if (movable_.empty()) return;
    const double mean = mean_cost();
    double price = mean;
    if (state_.totals().excess > 0) price *= static_cast<double>(problem_.ops()) / state_.totals().excess;
    const std::int64_t from = spent();
    int round = 0;
    while (spent() < until && !enough(found_)) {
      const double part = static_cast<double>(spent() - from) / static_cast<double>(until - from) * rounds;
      if (static_cast<int>(part) != round && found_.schedule) return_to(found_.held);
      round = static_cast<int>(part);
      const double hot = mean * kHot[static_cast<std::size_t>(round) % kHot.size()];
      const double heat = hot * std::pow(mean * kCold / hot, part - round);
      ++proposals_;
      const Totals now = state_.totals();
      propose();
      if (changes_.empty()) continue;
      state_.exchange(changes_);
      const Totals& next = state_.totals();
      const double worse = static_cast<double>(next.again - now.again) + price * (next.excess - now.excess);
      if (!next.too_often && (worse <= 0 || numbers_.next() < std::exp(-worse / heat))) {
        note();
      } else {
        std::reverse(changes_.begin(), changes_.end());
        state_.exchange(changes_);
      }
      price *= state_.totals().fits() ? kCheaper : kDearer;
    }
  }

  std::int64_t spent() const { return state_.work() + proposals_; }

  std::size_t any(std::size_t count) { return static_cast<std::size_t>(numbers_.next() * static_cast<double>(count)); }

  Held dropped(const Interval& interval) {
    return {interval.from, interval.to, interval.to, interval.to < ops_ && numbers_.next() < kStays};
  }
  bool is_kept(std::uint32_t i) const { return state_.held()[i] == RerunState::kept(state_.intervals()[i]); }

  /// Proposes a change of one or more intervals, in `changes_`; empty if there is none.
  void propose() {
    changes_.clear();
    const double kind = numbers_.next();
    if (!state_.totals().fits() && kind < 0.3)
      drop_at(state_.totals().worst);
    else if (kind < 0.55)
      toggle();
    else
      hold_for_rerun(kind);
    if (changes_.empty()) return;
    if (state_.held()[changes_[0].interval] == changes_[0].held) return changes_.clear();
    const double more = numbers_.next();
    if (more < kHoldInputs)
      hold_inputs();
    else if (more < kHoldInputs + kExchange)
      exchange();
  }

  void toggle() {
    const std::uint32_t i = movable_[any(movable_.size())];
    const Interval& interval = state_.intervals()[i];
    if (numbers_.next() < 0.3) {
      Held back = dropped(interval);
      back.again = interval.from + 1 + static_cast<Stage>(any(static_cast<std::size_t>(interval.to - interval.from)));
      changes_.push_back({i, back});
    } else {
      changes_.push_back({i, is_kept(i) ? dropped(interval) : RerunState::kept(interval)});
    }
  }

  /// Drops a value that is kept in a stage and not used there; it may be rerun before its next use.
  void drop_at(Stage stage) {
    const std::vector<std::uint32_t>& around = around_[static_cast<std::size_t>(stage)];
    for (int tries = 0; tries < 30 && !around.empty(); ++tries) {
      const std::uint32_t i = around[any(around.size())];
      if (!state_.held()[i].at(stage)) continue;
      const Interval& interval = state_.intervals()[i];
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
    for (const Op input : problem_.inputs[state_.intervals()[i].value]) {
      const std::uint32_t k = state_.interval_at(input, held.again);
      if (state_.held()[k].at(held.again)) continue;
      changes_.push_back({k, hold_until(k, held.again)});
    }
  }

  Held hold_until(std::uint32_t i, Stage stage) const {
    Held longer = state_.held()[i];
    const Interval& interval = state_.intervals()[i];
    if (stage == interval.to) return RerunState::kept(interval);
    longer.until = stage;
    if (longer.again <= stage) longer.again = longer.until_again = interval.to;
    return longer;
  }

  /// Adds the opposite change of a value that is held at the same time: kept if the first is dropped, dropped if the
  /// first is kept.
  void exchange() {
    const auto [i, held] = changes_[0];
    const Interval& one = state_.intervals()[i];
    const bool drops = held.until == one.from;
    for (int tries = 0; tries < 20; ++tries) {
      const std::uint32_t k = movable_[any(movable_.size())];
      const Interval& other = state_.intervals()[k];
      if (k == i || other.from >= one.to || other.to <= one.from || is_kept(k) == drops) continue;
      changes_.push_back({k, drops ? RerunState::kept(other) : dropped(other)});
      return;
    }
  }

  /// Changes the interval around a rerun: the value is kept from the use before it, or until the next need after it, or
  /// for a shorter time, or its rerun is earlier.
  void hold_for_rerun(double kind) {
    if (state_.reruns().empty()) return;
    const RerunState::Rerun run = state_.reruns()[any(state_.reruns().size())];
    const std::uint32_t i = state_.interval_at(run.op, run.stage);
    const Interval& interval = state_.intervals()[i];
    Held held = state_.held()[i];
    if (kind < 0.7) {  // held until this stage: the rerun is not needed
      held = hold_until(i, run.stage);
    } else if (kind < 0.92) {  // held from this run to the end of the interval, or to the next run
      held.again = run.stage;
      held.until_again = interval.to;
      if (kind >= 0.85 || interval.to == ops_) held.until_again = state_.next_rerun(run.op, run.stage);
      if (held.until_again > interval.to) held.until_again = ops_;
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

  const RerunProblem& problem_;
  const RerunSearch& search_;
  Stage ops_;
  RandomNumbers numbers_;
  RerunState state_;
  Found found_;
  std::int64_t proposals_ = 0;
  std::vector<RerunState::Change> changes_;         // of one step of the search
  std::vector<std::uint32_t> movable_;              // intervals in which a drop frees memory
  std::vector<std::vector<std::uint32_t>> around_;  // by stage: intervals that begin before it and end after it
};

}  // namespace

std::optional<RerunSchedule> search_reruns(const RerunProblem& problem, const RerunSearch& search) {
  return Annealing{problem, search}.run();
}

}  // namespace tidepool
