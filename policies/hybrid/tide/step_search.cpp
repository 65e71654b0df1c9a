#include "policies/hybrid/tide/step_search.hpp"

#include <algorithm>
#include <utility>

#include "policies/hybrid/tide/limit_search.hpp"
#include "policies/hybrid/tide/priced_choice.hpp"
#include "simulator/solvers/robustness.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kPrices = 12;

/// The machine for which copies are chosen: its links have the rate that they have while data moves both ways.
Machine with_busy_links(Machine machine) {
  for (Link* const link : {&machine.h2d, &machine.d2h}) *link = at_rate(std::move(*link), link->duplex_ppm);
  return machine;
}

}  // namespace

StepSearch::StepSearch(const Trace& trace, const RunSpec& spec, bool recomputes, Bytes least,
                       std::vector<DeadContent> dead, std::uint64_t seed, const Phases& phases, const Trace* recorded)
    : runs_{trace, spec, recomputes ? OnDemand::kCopyOrDrop : OnDemand::kCopy, recorded},
      model_{trace, runs_.counted(), recomputes, least, std::move(dead)},
      phases_{phases},
      evaluator_{model_},
      relaxation_{model_},
      busy_{with_busy_links(model_.machine)},
      prices_{possible_prices(model_, kPrices)},
      weight_(model_.gaps.size()),
      search_{model_, evaluator_, seed, [this](const Treatments& treatments) { return confirm(treatments); },
              [this](Treatments& treatments, SearchRandom& random) { recreate(treatments, random); }} {}

bool StepSearch::loses_nothing() const {
  return runs_.best() && runs_.best()->result.totals.makespan <= runs_.best()->result.baseline;
}

/// Runs the plan that was just evaluated, with late swap-ins, and with early ones if it takes longer than evaluated.
Nanos StepSearch::confirm(const Treatments& treatments) {
  const auto run = [&](Evaluator::SwapIns swap_ins) {
    return runs_.confirm(evaluator_.draft(treatments, swap_ins), evaluator_.capacity());
  };
  const Nanos late = run(Evaluator::SwapIns::kLate);
  return late <= evaluator_.last().period ? late : std::min(late, run(Evaluator::SwapIns::kEarly));
}

void StepSearch::set_limit(Bytes limit) {
  evaluator_.set_capacity(limit);
  runs_.begin_limit();
  search_.restart();
}

void StepSearch::start() {
  constexpr int kPrograms = 8;
  if (phases_.relaxation) solve_programs(kPrograms);
  if (!search_.found()) search_.add(Treatments(model_.gaps.size()));
  if (phases_.lower_limits && !loses_nothing()) {
    if (runs_.plans_places())
      find_placed_limit();
    else if (!runs_.counts_bytes())
      find_pool_limit();
  }
  if (!phases_.relaxation) std::fill(weight_.begin(), weight_.end(), 1);
  search_.weigh(weight_);
}

/// Plans for a limit below that of an earlier plan.
void StepSearch::plan_for(Bytes limit, const Treatments& earlier) {
  constexpr int kPrograms = 2;
  set_limit(limit);
  search_.add(earlier);
  if (phases_.relaxation) solve_programs(kPrograms);
  repair(earlier);
}

/// Finds the highest limit at which the places of a plan fit.
void StepSearch::find_placed_limit() {
  constexpr int kLimits = 6;
  LimitSearch limits{evaluator_.capacity(), runs_.counted().capacity / 500};
  std::optional<std::pair<Bytes, Treatments>> low;
  for (int i = 0; i < kLimits && search_.found(); ++i) {
    const Bytes limit = limits.limit();
    if (const Bytes excess = runs_.place_best(); excess > Bytes{}) {
      limits.is_high(excess);
    } else {
      if (!low || low->first < limit) low = {limit, search_.best()};
      limits.is_low();
    }
    if (limits.done()) break;
    plan_for(limits.limit(), Treatments{search_.best()});
  }
  if (!low || low->first == evaluator_.capacity()) return;
  set_limit(low->first);
  search_.add(low->second);
}

/// Finds the limit for which plans lose the least time in a pool that chooses places itself.
void StepSearch::find_pool_limit() {
  const Bytes capacity = evaluator_.capacity();
  Bytes best = capacity;
  Nanos time = search_.best_time();
  Treatments treatments = search_.found() ? search_.best() : Treatments(model_.gaps.size());
  for (const std::int64_t percent : {98, 95, 92, 88, 84, 79, 74}) {
    plan_for(capacity * percent / 100, treatments);
    add_priced();
    if (!search_.found() || search_.best_time() >= time) continue;
    best = evaluator_.capacity();
    time = search_.best_time();
    treatments = search_.best();
  }
  set_limit(best);
  search_.add(treatments);
}

/// After a round, the next one searches with fewer bytes if only places were missing, and else with more.
void StepSearch::adapt_limit(bool improved) {
  const Bytes capacity = runs_.counted().capacity, limit = evaluator_.capacity();
  const Bytes excess = improved ? Bytes{} : runs_.excess();
  const Bytes next = excess > Bytes{} ? std::max(limit - std::max(excess * 3 / 4, capacity / 500), Bytes{1})
                                      : limit + (capacity - limit) / 4;
  if (next == limit) return;
  const Treatments best = search_.best();
  set_limit(next);
  search_.add(best);
}

/// By slot: the limit less a share of the bytes that the last evaluation has on the device early.
SlotLimits StepSearch::limits_beside(const Treatments& treatments, std::int64_t share_of_1024) const {
  SlotLimits limits = evaluator_.early_bytes(treatments);
  for (Bytes& each : limits) each = evaluator_.capacity() - each / 1'024 * share_of_1024;
  return limits;
}

/// Adds the best plan that extends another one by prices until it fits.
void StepSearch::repair(const Treatments& treatments) {
  if (!evaluator_.evaluate(treatments).possible()) return;
  const SlotLimits limits = limits_beside(treatments, 1'024);
  std::optional<std::pair<Nanos, Treatments>> best;
  for (const double price : prices_) {
    Treatments extended = choose_by_price(model_, busy_, model_.recompute, price, limits, treatments);
    const Nanos time = evaluator_.evaluate(extended).period;
    if (time != Evaluation::kImpossible && (!best || time < best->first)) best = {time, std::move(extended)};
  }
  if (best) search_.add(best->second);
}

void StepSearch::add_priced() {
  constexpr int kRounds = 3;
  constexpr std::size_t kConfirmed = 5;
  if (!phases_.prices || loses_nothing()) return;
  std::vector<std::pair<Nanos, Treatments>> plans;
  for (const double price : prices_) {
    SlotLimits limits(model_.ops(), evaluator_.capacity());
    for (int round = 0; round < kRounds; ++round) {
      Treatments plan = choose_by_price(model_, busy_, model_.recompute, price, limits, Treatments(weight_.size()));
      const Nanos time = evaluator_.evaluate(plan).period;
      if (time == Evaluation::kImpossible) break;
      SlotLimits next = limits_beside(plan, 1'024);
      plans.emplace_back(time, std::move(plan));
      if (next == limits) break;
      limits = std::move(next);
    }
  }
  std::sort(plans.begin(), plans.end());
  plans.erase(std::unique(plans.begin(), plans.end()), plans.end());
  for (std::size_t i = 0; i < std::min(plans.size(), kConfirmed); ++i) search_.add(plans[i].second);
  for (const auto& [time, plan] : plans)
    for (std::size_t i = 0; i < plan.size(); ++i)
      if (plan[i] != How::kKept && weight_[i] == 0) weight_[i] = 0.3;
  search_.weigh(weight_);
  if (phases_.lower_limits && runs_.plans_places()) find_placed_limit();
}

void StepSearch::round(std::int64_t moves) {
  if (!phases_.rounds || loses_nothing()) return;
  const Nanos before = search_.best_time();
  runs_.require_places();
  search_.round(moves);
  if (runs_.plans_places()) adapt_limit(search_.best_time() < before);
}

/// Chooses again by a random price, with costs that vary by up to two either way.
void StepSearch::recreate(Treatments& treatments, SearchRandom& random) {
  const bool fits = evaluator_.evaluate(treatments).possible() && random.chance(0.7);
  const auto share = static_cast<std::int64_t>(random.below(1'229));
  const SlotLimits limits = fits ? limits_beside(treatments, share) : SlotLimits(model_.ops(), evaluator_.capacity());
  std::vector<Nanos> costs = model_.recompute;
  for (Nanos& cost : costs)
    if (cost != StepModel::kImpossible)
      cost = cost * static_cast<std::int64_t>(1'024 + random.below(1'024)) /
             static_cast<std::int64_t>(1'024 + random.below(1'024));
  const double price = prices_[random.below(prices_.size())];
  treatments = choose_by_price(model_, busy_, costs, price, limits, std::move(treatments));
}

/// Solves programs, each with the times and bytes of the plan before. Every second one has copies during waits.
void StepSearch::solve_programs(int count) {
  constexpr int kSlackPerMille[] = {0, 0, 5, 15, 25, 10, 40, 20};
  for (int i = 0; i < count && !search_.loses_nothing(); ++i) {
    const Bytes limit = evaluator_.capacity() * (1'000 - kSlackPerMille[i]) / 1'000;
    const std::optional<RelaxedPlan> plan = relaxation_.solve(limit, i % 2 == 1);
    if (!plan) continue;
    for (std::size_t g = 0; g < weight_.size(); ++g) weight_[g] = std::max(weight_[g], plan->weight[g]);
    search_.add(plan->rounded);
    const Evaluation& found = evaluator_.evaluate(plan->rounded);
    if (!found.possible()) continue;
    relaxation_.set_more_load(evaluator_.recomputation_bytes(plan->rounded));
    if (found.period < model_.circle.period() * 3) relaxation_.set_clock(found.start);
  }
}

}  // namespace tidepool
