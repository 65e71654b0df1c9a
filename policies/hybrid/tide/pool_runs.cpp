#include "policies/hybrid/tide/pool_runs.hpp"

#include <algorithm>
#include <utility>

#include "policies/planning/search/plan_answer.hpp"
#include "policies/planning/search/run_places.hpp"
#include "simulator/engine/boundary.hpp"
#include "simulator/engine/iteration_watch.hpp"

namespace tidepool {

PoolRuns::PoolRuns(const Trace& trace, const RunSpec& spec, OnDemand on_demand, const Trace* recorded)
    : trace_{trace},
      recorded_{recorded},
      spec_{spec},
      on_demand_{on_demand},
      granule_{granule_of(spec.pool)},
      counted_{spec} {
  if (!granule_) return;
  counted_.pool = "ideal";
  counted_.capacity = *granule_ * (spec.capacity / *granule_);
  placer_.emplace(trace, spec, on_demand, *granule_);
}

/// The limit of runs that matter only if they are not much slower than `best`.
std::optional<double> PoolRuns::overhead_limit(const Result* best) const {
  constexpr double kLeast = 2;  // the first iterations take longer than the cycle, mostly while a pool grows
  if (best == nullptr) return spec_.overhead_limit;
  std::optional<double> limit = limit_of(trace_, spec_, *best, 2);
  if (limit && *limit < kLeast) limit = std::min(kLeast, spec_.overhead_limit.value_or(kLeast));
  return limit;
}

/// @return  the time of the answer; kFailed if it does not end well
Nanos PoolRuns::offer(const Result& result, Maker make) {
  if (result.outcome != Outcome::kOk) return kFailed;
  if (!may_be_best(result)) return result.totals.makespan;
  Found found{result, std::move(make)};
  if (recorded_ != nullptr) {
    runs_ += 2;
    Plan plan = judge(trace_, spec_, found.make(), true).realised;
    PlanAnswer answer = answer_of_plan(*recorded_, spec_, repeated_as_asked(*recorded_, spec_, std::move(plan)), true);
    if (answer.result.outcome != Outcome::kOk) return kFailed;
    found = {std::move(answer.result), std::move(answer.make)};
  }
  const Nanos time = found.result.totals.makespan;
  if (!may_be_best(found.result)) return time;
  if (best_) earlier_.push_back(std::move(*best_));
  best_ = std::move(found);
  return time;
}

/// Runs a draft in the pool of the run. The run ends early if its later iterations all take much longer than the best
/// answer; then their mean stands for its time.
Nanos PoolRuns::run_in_pool(const GapDraft& draft) {
  constexpr std::size_t kFew = 4;
  constexpr std::int64_t kMuchPerMille = 1'100;
  ++runs_;
  RunSpec spec = spec_;
  spec.overhead_limit = overhead_limit(best_ ? &best_->result : nullptr);
  std::optional<Nanos> mean;  // of a run that ended early
  const auto goes_on = [&](std::span<const Totals> done) {
    if (!best_ || done.size() < kFew) return true;
    const std::size_t later = done.size() / 2;
    const Nanos much = best_->result.totals.makespan * kMuchPerMille / 1'000;
    if (std::any_of(done.end() - static_cast<std::ptrdiff_t>(later), done.end(),
                    [&](const Totals& each) { return each.makespan <= much; }))
      return true;
    mean = mean_of_last(done, static_cast<int>(later)).makespan;
    return false;
  };
  const Result result = [&] {
    const IterationWatch watch{goes_on};
    return judge(trace_, spec, follow_draft(draft, on_demand_));
  }();
  if (mean) return *mean;
  return offer(result, [draft, on_demand = on_demand_] { return follow_draft(draft, on_demand); });
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

/// Places like those of the last draft that found places, or, if places are required, others.
bool PoolRuns::find_places(Counted& counted) {
  if (placed_log_ && follow(counted, placer_->pack_like(*counted.log, *placed_log_, places_))) return true;
  if (!requires_places_) return false;
  const FoundPlaces places = placer_->pack(*counted.log, Placer::Packing::kThorough);
  if (follow(counted, places)) return true;
  const Bytes excess = places.height - spec_.capacity;
  excess_ = excess_ == Bytes{} ? excess : std::min(excess_, excess);
  return false;
}

Nanos PoolRuns::confirm(const GapDraft& draft, Bytes limit) {
  if (!plans_places()) return run_in_pool(draft);
  ++runs_;
  Placer::Counted run = placer_->count(draft, limit, overhead_limit(best_counted_ ? &best_counted_->result : nullptr));
  if (run.result.outcome != Outcome::kOk) return kFailed;
  const Nanos time = run.result.totals.makespan;
  if (best_counted_ && !better(run.result, best_counted_->result)) return time;
  Counted counted{std::move(run.result), draft, std::move(run.log)};
  if (may_be_best(counted.result) && !find_places(counted) && requires_places_) return kFailed;
  best_counted_ = std::move(counted);
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
