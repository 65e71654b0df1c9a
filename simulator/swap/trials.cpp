#include "simulator/swap/trials.hpp"

#include <algorithm>
#include <utility>

#include "simulator/furthest_use.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Follows a draft, and does what `Other` does besides.
template <class Other>
class Follow final : public Other {
 public:
  explicit Follow(std::vector<Action> draft) : draft_{std::move(draft)} {}
  std::vector<Action> plan(const Trace&, const Machine&, Bytes) override { return std::move(draft_); }

 private:
  std::vector<Action> draft_;
};

}  // namespace

std::unique_ptr<Policy> follow_draft(std::vector<Action> draft, Otherwise otherwise) {
  if (otherwise == Otherwise::kOutOfMemory) return std::make_unique<Follow<Policy>>(std::move(draft));
  return std::make_unique<Follow<SwapOutLeast<FurthestFirst>>>(std::move(draft));
}

Result judge(const Trace& trace, const RunSpec& spec, std::unique_ptr<Policy> policy, bool keep_plan) {
  RunSpec setting = spec;
  if (find_pool(parse_spec(spec.pool).name).plan) setting.pool = "best-fit";
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(std::move(policy));
  return simulate_under(trace, setting, std::move(policies), true, keep_plan);
}

bool better(const Result& a, const Result& b) {
  if ((a.outcome == Outcome::kOk) != (b.outcome == Outcome::kOk)) return a.outcome == Outcome::kOk;
  const Nanos time_a = a.totals.makespan, time_b = b.totals.makespan;
  if (time_a != time_b) return time_a < time_b;
  return a.totals.swap_out + a.totals.swap_in < b.totals.swap_out + b.totals.swap_in;
}

Trials::Trials(const Trace& trace, const RunSpec& spec, std::int64_t tries)
    : trace_{trace},
      spec_{spec},
      tries_{tries},
      best_result_{judge(trace, spec, follow_draft({}))},
      last_result_{best_result_} {}

bool Trials::free() const {
  return best_result_.outcome == Outcome::kOk && best_result_.totals.makespan <= best_result_.baseline;
}

const Result& Trials::add(const std::vector<Gap>& gaps, const std::vector<PlannedGap>& planned) {
  std::vector<Action> draft = draft_of(gaps, planned, trace_.ops().size());
  if (draft == last_) return last_result_;
  last_ = std::move(draft);
  last_result_ = judge(trace_, spec_, follow_draft(last_));
  --tries_;
  ++judged_;
  if (better(last_result_, best_result_)) best_result_ = last_result_, best_ = last_, best_plan_ = planned;
  return last_result_;
}

void try_rounds(Trials& trials, const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine,
                Bytes capacity, Bytes slack, int rounds, CopyOut copies,
                const std::function<Selection(const SlotLimits&)>& select) {
  SlotLimits limits(circle.size(), capacity - slack);
  for (int round = 0; round < rounds && !trials.over(); ++round) {
    const Selection selection = select(limits);
    std::vector<PlannedGap> planned =
        schedule_late(circle, gaps, selection.gaps, machine, std::max(capacity, selection.peak));
    if (copies == CopyOut::kWhenFree) copy_when_free(circle, gaps, planned, machine);
    trials.add(gaps, planned);
    if (!selection.fits) return;
    const std::vector<Bytes> under_way = bytes_under_way(circle, gaps, selection.gaps, machine, copies);
    SlotLimits next(circle.size());
    for (std::size_t k = 0; k < next.size(); ++k) next[k] = capacity - slack - under_way[k];
    if (next == limits) return;
    limits = std::move(next);
  }
}

}  // namespace tidepool
