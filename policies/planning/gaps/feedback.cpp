#include "policies/planning/gaps/feedback.hpp"

#include <algorithm>
#include <optional>

#include "policies/planning/gaps/peak_selection.hpp"
#include "policies/planning/gaps/priced_selection.hpp"
#include "policies/planning/gaps/realised_step.hpp"

namespace tidepool {
namespace {

/// Rounds of selection and scheduling, all for one realised step.
class Rounds {
 public:
  Rounds(Trials& trials, const RealisedStep& step, const std::vector<Gap>& gaps, const Machine& machine)
      : trials_{trials}, step_{step}, gaps_{gaps}, machine_{machine} {}

  void run(const std::vector<double>& prices, Bytes capacity, Bytes slack) {
    const StepCircle& circle = step_.circle;
    SlotLimits limits(circle.size(), capacity - slack);
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds && !trials_.over(); ++round) {
      const Selection selection = select_for_peaks(circle, gaps_, prices, limits);
      const std::vector<std::uint32_t> copied = with_begun_on_host(
          step_, gaps_, machine_, worth_copying(circle, gaps_, selection.gaps, machine_, CopyOut::kWhenFree));
      const Bytes room = std::max(capacity, peak_without(circle, gaps_, copied));
      GapPlan plan{schedule_late(circle, gaps_, copied, machine_, room), {}, false};
      copy_when_free(circle, gaps_, plan.copied, machine_);
      const Result& result = trials_.add(gaps_, plan);
      if (!best_ || better(result, *best_)) best_ = result, best_plan_ = std::move(plan);
      if (!selection.fits) return;
      SlotLimits next = bytes_under_way(circle, gaps_, copied, machine_, CopyOut::kWhenFree);
      for (Bytes& bytes : next) bytes = capacity - slack - bytes;
      if (next == limits) return;
      limits = std::move(next);
    }
  }

  const std::optional<Result>& best() const { return best_; }
  const GapPlan& best_plan() const { return best_plan_; }

 private:
  Trials& trials_;
  const RealisedStep& step_;
  const std::vector<Gap>& gaps_;
  const Machine& machine_;
  std::optional<Result> best_;
  GapPlan best_plan_;
};

}  // namespace

void try_feedback(Trials& trials, const Trace& trace, const StepCircle& circle, const std::vector<Gap>& gaps,
                  const Machine& machine, Bytes capacity, std::int64_t tries) {
  const std::int64_t least_left = trials.left() - tries;
  Bytes largest;
  for (const Gap& gap : gaps) largest = std::max(largest, gap.size);
  GapPlan plan = trials.best_plan();
  std::optional<Result> last;
  constexpr int kIdle = 2;
  for (int idle = 0; idle < kIdle && !trials.over() && trials.left() > least_left;) {
    const RunSpec& spec = trials.spec();
    const Result run = trials.realise(trials.draft(gaps, plan));
    if (run.outcome != Outcome::kOk) return;
    const RealisedStep step = realised_step(trace, spec, circle, run.realised);
    Rounds rounds{trials, step, gaps, machine};
    for (const AmongLike like : {AmongLike::kFirstReleased, AmongLike::kLongest}) {
      const std::vector<double> prices = copy_prices(step, gaps, machine, like);
      for (const int slack : {0, 2, 5, 10}) rounds.run(prices, capacity, largest * slack / 10);  // slack in tenths
    }
    if (!rounds.best()) return;
    idle = last && !better(*rounds.best(), *last) ? idle + 1 : 0;
    last = rounds.best();
    plan = rounds.best_plan();
  }
}

}  // namespace tidepool
