#include "policies/hybrid/tide_prices/pool_runs.hpp"

#include <algorithm>
#include <utility>

#include "policies/planning/search/run_places.hpp"

namespace tidepool {

PoolRuns::PoolRuns(const Trace& trace, const RunSpec& spec, OnDemand on_demand)
    : trace_{trace}, spec_{spec}, on_demand_{on_demand}, granule_{granule_of(spec.pool)}, counted_{spec} {
  if (!granule_) return;
  counted_.pool = "ideal";
  counted_.capacity = *granule_ * (spec.capacity / *granule_);
  placer_.emplace(trace, spec, on_demand, *granule_);
}

void PoolRuns::offer(const Result& result, Maker make) {
  if (result.outcome != Outcome::kOk || !may_be_best(result)) return;
  if (best_) earlier_.push_back(std::move(*best_));
  best_ = Found{result, std::move(make)};
}

void PoolRuns::run_in_pool(const GapDraft& draft) {
  ++runs_;
  RunSpec spec = spec_;
  if (best_) spec.overhead_limit = limit_of(trace_, spec, best_->result, 2);
  offer(judge(trace_, spec, follow_draft(draft, on_demand_)),
        [draft, on_demand = on_demand_] { return follow_draft(draft, on_demand); });
}

bool PoolRuns::follow(Counted& counted, const FoundPlaces& places) {
  if (places.height > spec_.capacity) return false;
  const Placer::Placed placed = placer_->follow(counted.draft, *counted.log, places);
  ++runs_;
  offer(placed.result, [draft = placed.draft] { return draft.answer(); });
  counted.placed = true;
  placed_log_ = counted.log;
  places_ = places;
  return true;
}

Nanos PoolRuns::confirm(const GapDraft& draft, Bytes limit) {
  const auto time_of = [](const Result& result) {
    return result.outcome == Outcome::kOk ? result.totals.makespan : kFailed;
  };
  if (!plans_places()) {
    ++runs_;
    RunSpec spec = spec_;
    if (best_) spec.overhead_limit = limit_of(trace_, spec, best_->result, 2);
    const Result result = judge(trace_, spec, follow_draft(draft, on_demand_));
    offer(result, [draft, on_demand = on_demand_] { return follow_draft(draft, on_demand); });
    return time_of(result);
  }
  ++runs_;
  std::optional<double> most = spec_.overhead_limit;
  if (best_counted_) most = limit_of(trace_, spec_, best_counted_->result, 2);
  Placer::Counted run = placer_->count(draft, limit, most);
  const Nanos time = time_of(run.result);
  if (run.result.outcome != Outcome::kOk) return time;
  if (best_counted_ && !better(run.result, best_counted_->result)) return time;
  best_counted_ = Counted{std::move(run.result), draft, std::move(run.log)};
  if (placed_log_ && may_be_best(best_counted_->result))
    follow(*best_counted_, placer_->pack_like(*best_counted_->log, *placed_log_, places_));
  return time;
}

Bytes PoolRuns::place_best() {
  if (!plans_places() || !best_counted_ || best_counted_->placed || !may_be_best(best_counted_->result)) return {};
  run_in_pool(best_counted_->draft);
  if (!may_be_best(best_counted_->result)) return {};
  const FoundPlaces places = placer_->pack(*best_counted_->log, Placer::Packing::kHard);
  return follow(*best_counted_, places) ? Bytes{} : places.height - spec_.capacity;
}

}  // namespace tidepool
