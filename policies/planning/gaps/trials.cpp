#include "policies/planning/gaps/trials.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "policies/planning/eviction/furthest_use.hpp"
#include "policies/planning/eviction/next_use_victims.hpp"
#include "policies/planning/remat/draft.hpp"
#include "simulator/engine/decisions/explainer.hpp"
#include "simulator/run.hpp"

namespace tidepool {
namespace {

/// Executes a draft, and lets another policy answer the first `most_asked` requests for room in each iteration.
class Follow final : public Policy, public Explainer {
 public:
  Follow(GapDraft draft, std::unique_ptr<Policy> on_demand, std::int64_t most_asked)
      : copies_{std::move(draft.copies)},
        drops_{std::move(draft.drops)},
        on_demand_{std::move(on_demand)},
        most_asked_{most_asked} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    on_demand_->plan(trace, spec);
    return std::move(copies_);
  }
  void start(const View& view) override {
    drops_.start();
    asked_ = 0;
    on_demand_->start(view);
  }
  void before_run(const View& view, OpId op, std::vector<Action>& out) override {
    on_demand_->before_run(view, op, out);
    drops_.due(view, op, out);
  }
  void make_room(const View& view, const Request& request, std::vector<Action>& out) override {
    if (++asked_ <= most_asked_) on_demand_->make_room(view, request, out);
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
  std::int64_t most_asked_, asked_ = 0;
};

std::unique_ptr<Policy> maker_of_room(OnDemand on_demand) {
  if (on_demand == OnDemand::kNothing) return std::make_unique<Policy>();
  if (on_demand == OnDemand::kCopy) return std::make_unique<SwapOutLeast<FurthestFirst>>();
  return std::make_unique<DropByNextUse>(NextUseFormula{}, nullptr, nullptr, on_demand == OnDemand::kCopyOrDrop);
}

}  // namespace

GapDraft draft_of(const std::vector<Gap>& gaps, const GapPlan& plan, std::size_t ops,
                  const std::vector<Action>& always) {
  const auto earlier = [](const Action& a, const Action& b) { return a.before < b.before; };
  const std::vector<Action> copies = draft_of(gaps, plan.copied, ops);
  GapDraft draft{{}, {}, plan.drops_on_demand};
  draft.copies.reserve(always.size() + copies.size());
  std::merge(always.begin(), always.end(), copies.begin(), copies.end(), std::back_inserter(draft.copies), earlier);
  for (const std::uint32_t i : plan.dropped)
    draft.drops.push_back({Verb::kDrop, OpId{gaps[i].release + std::size_t{1}}, gaps[i].out.value(), {}, {}});
  std::stable_sort(draft.drops.begin(), draft.drops.end(), earlier);
  return draft;
}

std::unique_ptr<Policy> follow_draft(GapDraft draft, OnDemand on_demand) {
  if (draft.drops_on_demand)
    return std::make_unique<Follow>(std::move(draft), maker_of_room(OnDemand::kDrop), kMostDrops);
  return std::make_unique<Follow>(std::move(draft), maker_of_room(on_demand), std::numeric_limits<std::int64_t>::max());
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

Nanos least_rerun(const Trace& trace, const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& dropped) {
  std::vector<bool> counted(trace.ops().size());
  Nanos sum;
  for (const std::uint32_t i : dropped) {
    const OpId producer = trace.version(gaps[i].out).producer;
    if (counted[producer.index()]) continue;
    counted[producer.index()] = true;
    sum += trace.op(producer).duration;
  }
  return sum;
}

Trials::Trials(const Trace& trace, const RunSpec& spec, std::int64_t tries, OnDemand on_demand, std::size_t keep,
               std::vector<Action> always)
    : trace_{trace},
      spec_{spec},
      tries_{tries},
      on_demand_{on_demand},
      keep_{keep},
      always_{std::move(always)},
      best_{always_, {}, false},
      last_{best_},
      best_result_{judge(trace, spec, follow_draft(best_, on_demand))},
      last_result_{best_result_} {
  for (const Op& op : trace.ops()) work_ += op.duration;
}

bool Trials::free() const {
  return best_result_.outcome == Outcome::kOk && best_result_.totals.makespan <= best_result_.baseline;
}

bool Trials::must_lose(const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& dropped) const {
  return keep_ == 0 && best_result_.outcome == Outcome::kOk && (spec_.iterations == 1 || spec_.steady) &&
         trace_.data().streams.size() == 1 && work_ + least_rerun(trace_, gaps, dropped) > best_result_.totals.makespan;
}

Result Trials::realise(GapDraft draft) {
  ++judged_;
  return judge(trace_, spec_, follow_draft(std::move(draft), on_demand_), true);
}

const Result& Trials::add(const std::vector<Gap>& gaps, const GapPlan& plan) {
  GapDraft drafted = draft(gaps, plan);
  if (drafted == last_) return last_result_;
  last_ = std::move(drafted);
  RunSpec spec = spec_;
  if (keep_ == 0) spec.overhead_limit = limit_of(trace_, spec_, best_result_, 1);
  if (must_lose(gaps, plan.dropped)) {
    last_result_ = {};
    last_result_.outcome = Outcome::kTimeLimit;
    last_result_.baseline = best_result_.baseline;
  } else {
    std::optional<Nanos> matters_to;
    if (keep_ == 0 && best_result_.outcome == Outcome::kOk) matters_to = best_result_.totals.makespan;
    last_result_ = judge(trace_, spec, follow_draft(last_, on_demand_), false, matters_to);
  }
  --tries_;
  ++judged_;
  if (better(last_result_, best_result_)) best_result_ = last_result_, best_ = last_, best_plan_ = plan;
  keep(last_result_, last_);
  return last_result_;
}

void Trials::take(const Trials& part) {
  tries_ -= part.judged_, judged_ += part.judged_;
  if (better(part.best_result_, best_result_))
    best_result_ = part.best_result_, best_ = part.best_, best_plan_ = part.best_plan_;
  for (const Judged& one : part.kept_) keep(one.result, one.draft);
}

void Trials::keep(const Result& result, const GapDraft& draft) {
  if (keep_ == 0 || result.outcome != Outcome::kOk) return;
  const auto place =
      std::find_if(kept_.begin(), kept_.end(), [&](const Judged& one) { return better(result, one.result); });
  if (std::any_of(kept_.begin(), place, [&](const Judged& one) { return one.draft == draft; })) return;
  kept_.insert(place, {result, draft});
  if (kept_.size() > keep_) kept_.pop_back();
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
    trials.add(gaps, {planned, {}, false});
    if (!selection.fits) return;
    const std::vector<Bytes> under_way = bytes_under_way(circle, gaps, selection.gaps, machine, copies);
    SlotLimits next(circle.size());
    for (std::size_t k = 0; k < next.size(); ++k) next[k] = capacity - slack - under_way[k];
    if (next == limits) return;
    limits = std::move(next);
  }
}

}  // namespace tidepool
