// A local search over treatments, on the evaluator, in rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "policies/hybrid/tide/evaluator.hpp"
#include "policies/hybrid/tide/step_model.hpp"
#include "policies/hybrid/tide/treatment.hpp"

namespace tidepool {

/// Random numbers that are the same on every machine.
class SearchRandom {
 public:
  explicit SearchRandom(std::uint64_t seed) : engine_{seed} {}
  /// In [0, 1).
  double share() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool chance(double probability) { return share() < probability; }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(share() * static_cast<double>(count)); }
  /// Of an exponential distribution with this mean, its density linear between halvings.
  Nanos exponential(Nanos mean);

 private:
  std::mt19937_64 engine_;
};

/// Simulated annealing. A move changes one interval; or two that overlap in time, against each other; or takes out the
/// choices around an op and recreates them. Moves are judged by the evaluator. A plan that promises to be the best is
/// confirmed by a run of the engine, and only confirmed plans become the best one. A round has a number of moves and
/// begins at the best plan with its own temperature, so more rounds only continue the search.
class LocalSearch {
 public:
  static constexpr Nanos kFailed{std::numeric_limits<std::int64_t>::max() / 4};
  /// The time of a plan, just evaluated, in a run of the engine; kFailed if it does not end well.
  using Confirm = std::function<Nanos(const Treatments&)>;
  /// Chooses again for intervals that are kept.
  using Recreate = std::function<void(Treatments&, SearchRandom&)>;

  /// @param model, evaluator  outlive the search
  LocalSearch(const StepModel& model, Evaluator& evaluator, std::uint64_t seed, Confirm confirm, Recreate recreate)
      : model_{model},
        evaluator_{evaluator},
        random_{seed},
        confirm_{std::move(confirm)},
        recreate_{std::move(recreate)} {
    for (std::size_t gap = 0; gap < model.gaps.size(); ++gap) drops_ |= model.can_drop(gap);
  }

  /// Evaluates and confirms a plan from elsewhere, which becomes the best if it is.
  void add(const Treatments& treatments);
  /// Forgets how good the plans are, after a change of capacity.
  void restart() { best_time_ = best_estimate_ = kFailed; }
  /// Sets the chance of each interval to be changed. Intervals without weight are not.
  void weigh(const std::vector<double>& weight);
  void round(std::int64_t moves);

  const Treatments& best() const { return best_; }
  Nanos best_time() const { return best_time_; }
  bool found() const { return best_time_ != kFailed; }
  /// Whether the best plan takes no longer than the step without limit.
  bool loses_nothing() const { return best_time_ <= model_.circle.period(); }

 private:
  void move(Nanos temperature);
  void set(std::size_t gap, How treatment);
  void change_one(std::size_t gap);
  void exchange(std::size_t gap);
  void ruin();
  How other_than(std::size_t gap, How treatment);
  How answer_to(std::size_t other, How was, How now);
  bool overlap(const Gap& a, const Gap& b) const;
  std::size_t pick();
  bool is_confirmed(Nanos estimate);

  const StepModel& model_;
  Evaluator& evaluator_;
  SearchRandom random_;
  Confirm confirm_;
  Recreate recreate_;
  bool drops_ = false;
  std::vector<std::size_t> candidates_;
  std::vector<double> weight_sums_;  // of the candidates up to each
  Treatments current_, best_;
  Nanos estimate_ = kFailed, best_estimate_ = kFailed, best_time_ = kFailed;
  std::int64_t moves_ = 0, confirmed_ = 0, since_best_ = 0;
  std::vector<std::pair<std::size_t, How>> undo_;
};

}  // namespace tidepool
