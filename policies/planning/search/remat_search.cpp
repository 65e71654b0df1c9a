#include "policies/planning/search/remat_search.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "policies/planning/search/pooled_policy.hpp"
#include "simulator/engine/boundary.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/recompute_bounds.hpp"
#include "simulator/solvers/packing/search/random_numbers.hpp"

namespace tidepool {
namespace {

using Cost = NextUseFormula::Cost;

/// The most promising formula first; the first ones are also combined with cuts.
constexpr std::array kFormulas{NextUseFormula{Cost::kAncestors, 1},        NextUseFormula{Cost::kAncestors, 0.5},
                               NextUseFormula{Cost::kNeighbourhood, 1},    NextUseFormula{Cost::kAncestors, 0},
                               NextUseFormula{Cost::kNeighbourhood, 0.5},  NextUseFormula{Cost::kAncestors, 0.75},
                               NextUseFormula{Cost::kNeighbourhood, 0.75}, NextUseFormula{Cost::kAncestors, 0.25},
                               NextUseFormula{Cost::kNeighbourhood, 0.25}, NextUseFormula{Cost::kNeighbourhood, 0}};
constexpr std::size_t kFormulasWithCuts = 4;

/// The overhead limit of candidates, if the run has none.
constexpr double kMostOverhead = 100;

}  // namespace

/// One search: its pool and capacity, the best candidates, and the time at which it may stop.
struct RecomputeSearch::Round {
  Trying where;
  std::vector<Tried> best;  // the best first
  Nanos enough;             // the search ends at such a makespan: no plan is noticeably faster

  bool done() const { return !best.empty() && best.front().makespan <= enough; }
  std::optional<Nanos> limit() const { return best.empty() ? std::nullopt : std::optional{best.front().makespan}; }
};

RecomputeSearch::RecomputeSearch(const Trace& trace, const RunSpec& spec, double effort, std::string reactive)
    : trace_{trace},
      spec_{spec},
      effort_{effort},
      reactive_{std::move(reactive)},
      maker_{trace, spec.assume, spec.seed} {}

std::unique_ptr<Policy> RecomputeSearch::answer(const Candidate& candidate, Bytes capacity) {
  return answer(candidate, {capacity}, {});
}

std::unique_ptr<Policy> RecomputeSearch::answer(const Candidate& candidate, const Trying& where,
                                                std::shared_ptr<PlaceLog> log) {
  std::unique_ptr<Policy> first;
  if (!reactive_.empty()) first = maker_.make({.policy = reactive_}, where.capacity);
  std::unique_ptr<Pool> pool;
  if (where.granule) {
    if (!log) log = std::make_shared<PlaceLog>();
    pool = std::make_unique<CountedPool>(where.capacity, *where.granule, log);
  }
  return std::make_unique<PooledPolicy>(maker_.make(candidate, where.capacity), std::move(pool), std::move(first),
                                        std::move(log));
}

std::optional<Tried> RecomputeSearch::attempt(const Candidate& candidate, const Trying& where,
                                              std::optional<Nanos> faster_than) {
  RunSpec spec = spec_;
  spec.capacity = where.capacity;
  if (!spec.overhead_limit) spec.overhead_limit = kMostOverhead;
  if (faster_than && baseline_ > Nanos{}) {
    // With several streams, reruns may cost no time: only a coarse limit is safe.
    const double slack = trace_.data().streams.size() == 1 && spec_.iterations == 1 ? 1 : 2;
    const double ratio =
        1 + slack * (static_cast<double>(faster_than->count()) / static_cast<double>(baseline_.count()) - 1);
    spec.overhead_limit = std::min(*spec.overhead_limit, std::max(ratio, 1.0));
  }
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(answer(candidate, where, {}));
  const Result result = simulate_under(trace_, spec, std::move(policies), false, false, faster_than);
  baseline_ = result.baseline;
  if (result.outcome != Outcome::kOk) return std::nullopt;
  if (faster_than && result.totals.makespan >= *faster_than) return std::nullopt;
  return Tried{candidate, result.totals.makespan};
}

std::vector<Tried> RecomputeSearch::attempt_all(const std::vector<Tried>& known, const Trying& where) {
  std::vector<Tried> ordered;
  for (const Tried& each : known)
    if (std::optional<Tried> tried = attempt(each.candidate, where, std::nullopt)) ordered.push_back(std::move(*tried));
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Tried& a, const Tried& b) { return a.makespan < b.makespan; });
  return ordered;
}

std::optional<RecomputeSearch::Record> RecomputeSearch::record(const Candidate& candidate, const Trying& where) {
  RunSpec spec = spec_;
  spec.capacity = where.capacity;
  if (!spec.overhead_limit) spec.overhead_limit = kMostOverhead;
  const auto log = std::make_shared<PlaceLog>();
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(answer(candidate, where, log));
  Result result = simulate_under(trace_, spec, std::move(policies), false, true);
  if (result.outcome != Outcome::kOk) return std::nullopt;
  return Record{result.totals.makespan, std::move(result.realised), std::move(*log)};
}

void RecomputeSearch::offer(Round& round, const Candidate& candidate) {
  if (round.done()) return;
  std::optional<Tried> tried = attempt(candidate, round.where, round.limit());
  if (!tried) return;
  round.best.insert(round.best.begin(), std::move(*tried));
  if (round.best.size() > kFew) round.best.pop_back();
}

void RecomputeSearch::offer_all(Round& round, const std::vector<Candidate::Cut>& cuts) {
  for (std::size_t i = 0; i < kFormulasWithCuts; ++i) offer(round, {.formula = kFormulas[i], .cuts = cuts});
}

/// Tries variations of the cut at the hardest instant.
void RecomputeSearch::try_plans(Round& round, std::int32_t instant) {
  const std::int32_t ops = maker_.model().ops();
  for (const double share : {0.97, 0.94, 0.9, 0.85, 0.8, 0.7, 0.6}) offer_all(round, {{instant, share}});
  for (const std::int32_t further : {3, 6, 12}) {
    std::vector<Candidate::Cut> cuts{{instant, 1}};
    for (std::int32_t i = 1; i <= further; ++i) {
      const std::int32_t next = instant + (ops - 1 - instant) * i / (further + 1);
      if (next > cuts.back().instant) cuts.push_back({next, 1});
    }
    offer_all(round, cuts);
  }
  for (const double shift : {-0.015, 0.015, -0.03, 0.03, -0.06, 0.06, -0.1, 0.1, -0.15, 0.15}) {
    const std::int32_t moved = instant + static_cast<std::int32_t>(shift * ops);
    if (moved > 0 && moved < ops) offer_all(round, {{moved, 1}});
  }
}

/// Changes the weights of the best candidate at random; keeps each change that helps.
void RecomputeSearch::improve(Round& round) {
  std::vector<std::size_t> changeable;
  for (std::size_t i = 0; i < trace_.versions().size(); ++i)
    if (trace_.versions()[i].kind != VersionKind::kView && trace_.versions()[i].producer.valid() &&
        !trace_.readers(VersionId{i}).empty())
      changeable.push_back(i);
  constexpr double kOpsInAll = 400'000;
  const auto tries = static_cast<int>(std::min(
      2'000.0,
      effort_ * kOpsInAll /
          (1.0 + static_cast<double>(trace_.ops().size() * static_cast<std::size_t>(likely_iterations(spec_))))));
  RandomNumbers numbers{spec_.seed};
  for (int i = 0; i < tries && !round.done(); ++i) {
    Candidate changed = round.best.front().candidate;
    if (!changed.policy.empty()) return;  // a registered policy has no weights
    auto weights = changed.weights ? std::make_shared<DropByNextUse::Weights>(*changed.weights)
                                   : std::make_shared<DropByNextUse::Weights>(trace_.versions().size(), 1.0F);
    const double share = i % 3 == 0 ? 0.2 : i % 3 == 1 ? 0.05 : 0.01, strength = i % 2 == 0 ? 0.7 : 1.7;
    for (const std::size_t v : changeable) {
      if (numbers.next() >= share) continue;
      const auto factor = static_cast<float>(1 + strength * numbers.next());
      (*weights)[v] *= numbers.next() < 0.5 ? factor : 1 / factor;
    }
    changed.weights = std::move(weights);
    offer(round, changed);
  }
}

std::vector<Tried> RecomputeSearch::search(const Trying& where) {
  Round round{where, {}, {}};
  offer(round, {.formula = kFormulas[0]});
  round.enough = spec_.assume.clock_start + baseline_;
  if (round.done()) return round.best;
  const MinCutPlan cut = min_cut_plan(maker_.model(), where.capacity);
  const double least = static_cast<double>(cut.bound);
  round.enough += Nanos{static_cast<std::int64_t>(least * 1.001 + 1e-5 * static_cast<double>(baseline_.count()))};
  const bool has_cut = cut.feasible && cut.choice.known;
  if (has_cut) offer(round, {.formula = kFormulas[0], .cuts = {{cut.instant, 1}}});
  if (effort_ < kLittle) return round.best;
  for (std::size_t i = 1; i < kFormulas.size(); ++i) {
    if (has_cut && i < kFormulasWithCuts) offer(round, {.formula = kFormulas[i], .cuts = {{cut.instant, 1}}});
    offer(round, {.formula = kFormulas[i]});
  }
  if (has_cut) try_plans(round, cut.instant);
  for (const char* name : {"dtr-eq", "msps"}) offer(round, {.policy = name});
  if (!where.granule)
    for (const char* name : {"coop", "dte"}) offer(round, {.policy = name});
  if (round.best.empty())
    for (const char* name : {"dtr", "dtr-local", "largest", "lru", "coop", "dte", "sqrt-n"})
      offer(round, {.policy = name});
  if (!round.best.empty()) improve(round);
  return round.best;
}

}  // namespace tidepool
