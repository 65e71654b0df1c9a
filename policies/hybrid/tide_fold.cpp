#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "simulator/furthest_use.hpp"
#include "simulator/next_use_victims.hpp"
#include "simulator/registry.hpp"
#include "simulator/remat/draft.hpp"
#include "simulator/structure/tied_search.hpp"
#include "simulator/swap/trials.hpp"

namespace tidepool {
namespace {

/// Carries a plan out: copies are drafted, drops are decided when they are due. Where that is not enough, another
/// policy makes room.
class Follow : public Policy {
 public:
  std::vector<Action> plan_run(const Trace& trace, const RunSpec& spec) override {
    on_demand_->plan_run(trace, spec);
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
  bool watches() const override { return true; }
  void dropped(const View& view, VersionId v) override { on_demand_->dropped(view, v); }
  void computed(const View& view, std::span<const VersionId> versions) override {
    on_demand_->computed(view, versions);
  }
  std::int64_t cost_evaluations() const override { return on_demand_->cost_evaluations(); }

  void adopt(const Trace& trace, const std::vector<Gap>& gaps, const TiedPlan& plan) {
    copies_ = draft_of(gaps, plan.copied, trace.ops().size());
    std::vector<Action> drops;
    for (const std::uint32_t i : plan.dropped)
      drops.push_back({Verb::kDrop, OpId{gaps[i].release + std::size_t{1}}, gaps[i].out.value(), {}, {}});
    std::stable_sort(drops.begin(), drops.end(), [](const Action& a, const Action& b) { return a.before < b.before; });
    drops_ = Draft{std::move(drops)};
    // Each answer may walk all that is evicted: a plan that needs many is not worth being judged.
    constexpr std::int64_t kMostDrops = 300;
    if (plan.drops_on_demand) {
      on_demand_ = std::make_unique<DropByNextUse>(NextUseFormula{});
      most_asked_ = kMostDrops;
    }
  }

 private:
  std::vector<Action> copies_;
  Draft drops_;
  std::unique_ptr<Policy> on_demand_ = std::make_unique<SwapOutLeast<FurthestFirst>>();
  std::int64_t asked_ = 0, most_asked_ = std::numeric_limits<std::int64_t>::max();
};

/// Ours, for deep models: finds the layers of the step and decides for all of them at once (see TiedSearch). Where
/// nothing repeats every gap is decided by itself, and `effort` is soon spent.
///
/// Deterministic. Cost: at most `effort` simulations, O(ops log ops) for each.
class TideFold final : public Follow {
 public:
  explicit TideFold(const Options& options)
      : fold_{options.flag("fold")},
        effort_{std::llround(options.number("effort"))},
        least_{options.bytes("least")},
        drops_too_{options.word("with") != "swap"} {}

  std::vector<Action> plan_run(const Trace& trace, const RunSpec& spec) override {
    if (trace.ops().empty()) return {};
    const StepCircle circle = step_circle(trace);
    const std::vector<Gap> gaps = find_gaps(trace, least_, spec.assume);
    Structure structure = find_structure(trace);
    if (!fold_)
      for (std::uint32_t op = 0; op < structure.like.size(); ++op) structure.like[op] = op;
    RunSpec setting = spec;
    const auto run = [&](const TiedPlan& plan) {
      auto follow = std::make_unique<Follow>();
      follow->adopt(trace, gaps, plan);
      const Result result = judge(trace, setting, std::move(follow));
      const double overhead =
          static_cast<double>(result.totals.makespan.count()) / static_cast<double>(result.baseline.count());
      // What takes longer than the best so far is of no use, however much longer.
      if (result.outcome == Outcome::kOk && overhead < setting.overhead_limit.value_or(overhead + 1))
        setting.overhead_limit = overhead;
      return result;
    };
    TiedSearch search{circle,
                      gaps,
                      gap_classes(structure, circle, gaps),
                      drops_too_ ? rerun_costs(trace, gaps) : std::vector<Nanos>(gaps.size(), kCannot),
                      spec.machine,
                      spec.capacity,
                      run,
                      effort_};
    search.run();
    judged_ = search.judged();
    adopt(trace, gaps, search.best());
    return Follow::plan_run(trace, spec);
  }

  std::int64_t cost_evaluations() const override { return judged_; }

 private:
  bool fold_;
  std::int64_t effort_;
  Bytes least_;
  bool drops_too_;
  std::int64_t judged_ = 0;
};

const RegisterPolicy kRegistered{
    {.name = "tide-fold",
     .kind = PolicyKind::kHybrid,
     .summary = "plans what to copy and what to recompute for all like layers of a step at once",
     .paper = "ours",
     .options = {{"fold", "on", "on/off", "decide for all like layers together"},
                 {"with", "swap+remat", "swap|swap+remat", "what it may do"},
                 {"effort", "500", "number", "plans to simulate"},
                 {"least", "64KiB", "bytes", "smaller buffers stay"}},
     .make = [](const Options& options) { return std::make_unique<TideFold>(options); }}};

}  // namespace
}  // namespace tidepool
