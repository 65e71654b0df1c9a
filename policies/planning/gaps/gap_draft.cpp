#include "policies/planning/gaps/gap_draft.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "policies/planning/eviction/next_use_victims.hpp"
#include "policies/planning/eviction/victims.hpp"
#include "policies/planning/remat/draft.hpp"
#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/run.hpp"

namespace tidepool {
namespace {

/// Executes a draft, and lets another policy answer requests for room.
class Follow final : public Policy, public Explainer {
 public:
  Follow(GapDraft draft, std::unique_ptr<Policy> on_demand)
      : copies_{std::move(draft.copies)}, drops_{std::move(draft.drops)}, on_demand_{std::move(on_demand)} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    on_demand_->plan(trace, spec);
    return std::move(copies_);
  }
  void start(const View& view) override {
    drops_.start();
    on_demand_->start(view);
  }
  void before_run(const View& view, OpId op, std::vector<Action>& out) override {
    on_demand_->before_run(view, op, out);
    drops_.due(view, op, out);
  }
  void make_room(const View& view, const Request& request, std::vector<Action>& out) override {
    on_demand_->make_room(view, request, out);
  }
  Ranking ranking(const View& view, const Request& request) override { return ranking_of(*on_demand_, view, request); }
  bool follows_plan() const override { return true; }
  bool watches() const override { return on_demand_->watches(); }
  void dropped(const View& view, VersionId v) override { on_demand_->dropped(view, v); }
  void computed(const View& view, std::span<const VersionId> versions) override {
    on_demand_->computed(view, versions);
  }
  std::int64_t cost_evaluations() const override { return on_demand_->cost_evaluations(); }

 private:
  std::vector<Action> copies_;
  Draft drops_;
  std::unique_ptr<Policy> on_demand_;
};

std::unique_ptr<Policy> maker_of_room(OnDemand on_demand) {
  if (on_demand == OnDemand::kNothing) return std::make_unique<Policy>();
  if (on_demand == OnDemand::kCopy) return std::make_unique<SwapOutLeast<FurthestFirst>>();
  return std::make_unique<DropByNextUse>(NextUseFormula{}, nullptr, nullptr, true);
}

}  // namespace

GapDraft draft_of(const std::vector<Gap>& gaps, const GapPlan& plan, std::size_t ops,
                  const std::vector<Action>& always) {
  const auto earlier = [](const Action& a, const Action& b) { return a.before < b.before; };
  const std::vector<Action> copies = draft_of(gaps, plan.copied, ops);
  GapDraft draft;
  draft.copies.reserve(always.size() + copies.size());
  std::merge(always.begin(), always.end(), copies.begin(), copies.end(), std::back_inserter(draft.copies), earlier);
  for (const std::uint32_t i : plan.dropped)
    draft.drops.push_back({Verb::kDrop, OpId{gaps[i].release + std::size_t{1}}, gaps[i].out.value(), {}, {}});
  std::stable_sort(draft.drops.begin(), draft.drops.end(), earlier);
  return draft;
}

std::unique_ptr<Policy> follow_draft(GapDraft draft, OnDemand on_demand) {
  return std::make_unique<Follow>(std::move(draft), maker_of_room(on_demand));
}

Result judge(const Trace& trace, const RunSpec& spec, std::unique_ptr<Policy> policy, bool keep_plan,
             std::optional<Nanos> matters_to) {
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(std::move(policy));
  return simulate_under(trace, spec, std::move(policies), true, keep_plan, matters_to);
}

bool better(const Result& a, const Result& b) {
  if ((a.outcome == Outcome::kOk) != (b.outcome == Outcome::kOk)) return a.outcome == Outcome::kOk;
  const auto done = [](const Result& run) {
    return run.totals.makespan - run.totals.stall.compute - run.totals.recompute;
  };
  if (a.outcome != Outcome::kOk && done(a) != done(b)) return done(a) > done(b);
  const Nanos time_a = a.totals.makespan, time_b = b.totals.makespan;
  if (time_a != time_b) return time_a < time_b;
  return a.totals.swap_out + a.totals.swap_in < b.totals.swap_out + b.totals.swap_in;
}

std::optional<double> limit_of(const Trace& trace, const RunSpec& spec, const Result& best, double factor) {
  // With several streams, or iterations that differ, only the whole run gives the time.
  if (best.outcome != Outcome::kOk || best.baseline == Nanos{} || trace.data().streams.size() != 1 ||
      (spec.iterations != 1 && !spec.steady))
    return spec.overhead_limit;
  // If two iterations alternate, one may have twice the mean overhead, and the very first iteration even more.
  if (spec.steady) factor *= 3;
  const double overhead =
      static_cast<double>(best.totals.makespan.count()) / static_cast<double>(best.baseline.count()) - 1;
  const double limit = 1 + factor * overhead;
  return std::min(spec.overhead_limit.value_or(limit), limit);
}

}  // namespace tidepool
