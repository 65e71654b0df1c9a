#include "policies/swap/autoswap/trials.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace tidepool {

Trials::Trials(const Trace& trace, const RunSpec& spec, std::int64_t tries)
    : trace_{trace},
      spec_{spec},
      tries_{tries},
      best_result_{judge(trace, spec, follow_draft(best_, OnDemand::kCopy))},
      last_result_{best_result_} {}

bool Trials::over() const {
  return tries_ <= 0 || (best_result_.outcome == Outcome::kOk && best_result_.totals.makespan <= best_result_.baseline);
}

const Result& Trials::add(const std::vector<Gap>& gaps, const std::vector<PlannedGap>& copied) {
  GapDraft drafted{draft_of(gaps, copied, trace_.ops().size()), {}};
  if (drafted == last_) return last_result_;
  last_ = std::move(drafted);
  RunSpec spec = spec_;
  spec.overhead_limit = limit_of(trace_, spec_, best_result_, 1);
  std::optional<Nanos> matters_to;
  if (best_result_.outcome == Outcome::kOk) matters_to = best_result_.totals.makespan;
  last_result_ = judge(trace_, spec, follow_draft(last_, OnDemand::kCopy), false, matters_to);
  --tries_;
  ++judged_;
  if (better(last_result_, best_result_)) best_result_ = last_result_, best_ = last_;
  return last_result_;
}

void try_rounds(Trials& trials, const StepCircle& circle, const std::vector<Gap>& gaps, const RunSpec& spec,
                Bytes slack, int rounds, const std::function<Selection(const SlotLimits&)>& select) {
  SlotLimits limits(circle.size(), spec.capacity - slack);
  for (int round = 0; round < rounds && !trials.over(); ++round) {
    const Selection selection = select(limits);
    trials.add(gaps,
               schedule_late(circle, gaps, selection.gaps, spec.machine, std::max(spec.capacity, selection.peak)));
    if (!selection.fits) return;
    const std::vector<Bytes> under_way = bytes_under_way(circle, gaps, selection.gaps, spec.machine);
    SlotLimits next(circle.size());
    for (std::size_t k = 0; k < next.size(); ++k) next[k] = spec.capacity - slack - under_way[k];
    if (next == limits) return;
    limits = std::move(next);
  }
}

}  // namespace tidepool
