#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "simulator/bounds/fluid.hpp"
#include "simulator/furthest_use.hpp"
#include "simulator/registry.hpp"
#include "simulator/structure/tied_search.hpp"
#include "simulator/swap/local_search.hpp"
#include "simulator/swap/trials.hpp"

namespace tidepool {
namespace {

/// Ours: plans swaps by a portfolio of selections (every score of a gap, and the shares that the best fluid plan copies
/// of it, see fluid_bound) with and without slack, each made again with what its own copies under way hold taken off
/// the limits, and with copies to the host issued when a gap is released or as soon as the lane is free; then changes
/// the best selection one gap at a time. Every draft is scheduled as late as the periodic steady state allows and
/// judged by simulating the run that it is for; the search ends early when nothing is lost. Where the plan is not
/// enough, what is read again last is copied to the host on demand.
///
/// Deterministic for a seed. Cost: at most `effort` simulations, fewer where the step has more than 10^4 ops.
class Tide final : public SwapOutLeast<FurthestFirst> {
 public:
  explicit Tide(const Options& options)
      : effort_{std::llround(options.number("effort"))},
        least_{options.bytes("least")},
        seed_{options.seed()},
        fold_{options.flag("fold")} {}

  std::vector<Action> plan_run(const Trace& trace, const RunSpec& spec) override {
    if (trace.ops().empty() || trace.ideal_peak() <= spec.capacity) return {};
    const StepCircle circle = step_circle(trace);
    const std::vector<Gap> gaps = find_gaps(trace, least_, spec.assume);
    const auto simulated = static_cast<std::int64_t>(trace.ops().size()) * spec.iterations;
    const std::int64_t most = std::max<std::int64_t>(kMostOps / simulated, 32);
    Trials trials{trace, spec, std::min(effort_, most)};
    if (fold_) try_classes(trials, trace, circle, gaps, spec);
    Bytes largest;
    for (const Gap& gap : gaps) largest = std::max(largest, gap.size);
    const auto try_selections = [&](const std::vector<Select>& selections) {
      constexpr int kRounds = 5;
      for (const int slack : {0, 2, 4, 1, 6, 8, 10, 12, 16, 20, 30, 40, 60, 80})  // tenths of the largest gap
        for (const Select& select : selections)
          for (const CopyOut copies : {CopyOut::kAtRelease, CopyOut::kWhenFree})
            if (!trials.over())
              try_rounds(trials, circle, gaps, spec.machine, spec.capacity, largest * slack / 10, kRounds, copies,
                         select);
    };
    std::vector<Select> by_scores;
    for (const GapScore score : {GapScore::kSwdoa, GapScore::kDoa, GapScore::kWdoa, GapScore::kAoa, GapScore::kExcess})
      by_scores.emplace_back([&circle, &gaps, &spec, score](const SlotLimits& limits) {
        return select_gaps(circle, gaps, spec.machine, score, limits);
      });
    try_selections(by_scores);
    if (trials.over()) return finish(trials);
    if (const std::vector<double> shares = fluid_shares(trace, circle, gaps, spec); !shares.empty())
      try_selections({[&](const SlotLimits& limits) { return select_by_score(circle, gaps, shares, limits); }});
    improve(trials, circle, gaps, spec.machine, spec.capacity, seed_);
    return finish(trials);
  }

  std::int64_t cost_evaluations() const override { return judged_ + SwapOutLeast<FurthestFirst>::cost_evaluations(); }

 private:
  using Select = std::function<Selection(const SlotLimits&)>;
  static constexpr std::int64_t kMostOps = 10'000'000;

  /// Decides for all like layers at once, with half of the effort.
  void try_classes(Trials& trials, const Trace& trace, const StepCircle& circle, const std::vector<Gap>& gaps,
                   const RunSpec& spec) const {
    TiedSearch search{circle,
                      gaps,
                      gap_classes(find_structure(trace), circle, gaps),
                      std::vector<Nanos>(gaps.size(), kCannot),
                      spec.machine,
                      spec.capacity,
                      [&](const TiedPlan& plan) { return trials.add(gaps, plan.copied); },
                      effort_ / 2};
    search.run();
  }

  std::vector<Action> finish(const Trials& trials) {
    judged_ = trials.judged();
    return trials.best();
  }

  /// By gap: which share of it the best fluid plan copies, ties by the time that it is away. Empty if there is none.
  std::vector<double> fluid_shares(const Trace& trace, const StepCircle& circle, const std::vector<Gap>& gaps,
                                   const RunSpec& spec) const {
    constexpr std::size_t kMostOpsAndGaps = 6'000;  // beyond, the program takes seconds to solve
    if (trace.data().streams.size() != 1 || circle.size() + gaps.size() > kMostOpsAndGaps) return {};
    const Absences step = find_absences(trace, true, CopyFrom::kMade);
    const auto rate = [](const Link& link) { return static_cast<double>(link.rate.count()) / 1e9; };
    const FluidBound fluid = fluid_bound(step,
                                         {.capacity = spec.capacity,
                                          .out_rate = rate(spec.machine.d2h),
                                          .in_rate = rate(spec.machine.h2d),
                                          .remat = false,
                                          .repeats = true},
                                         {});
    if (fluid.copied.size() != step.absences.size()) return {};
    const auto n = static_cast<std::int64_t>(circle.size());
    std::map<std::tuple<std::int64_t, std::int64_t, Bytes>, double> share;
    for (std::size_t i = 0; i < step.absences.size(); ++i) {
      const Absence& absence = step.absences[i];
      if (absence.due == Absence::kNever || absence.size <= Bytes{}) continue;
      share[{((absence.first - 1) % n + n) % n, absence.due % n, absence.size}] =
          fluid.copied[i] / static_cast<double>(absence.size.count());
    }
    std::vector<double> shares;
    for (const Gap& gap : gaps) {
      const auto found = share.find({gap.release, gap.due % n, gap.size});
      shares.push_back((found == share.end() ? 0 : found->second) +
                       1e-6 * static_cast<double>(gap.due - gap.release) / static_cast<double>(n));
    }
    return shares;
  }

  std::int64_t effort_;
  Bytes least_;
  std::uint64_t seed_;
  bool fold_;
  std::int64_t judged_ = 0;
};

const RegisterPolicy kRegistered{
    {.name = "tide",
     .kind = PolicyKind::kHybrid,
     .summary = "plans what is on the host when, by trying many plans in the run that they are for",
     .paper = "ours",
     .options = {{"with", "swap", "swap", "what it may do"},
                 {"effort", "1000", "number", "plans to simulate; fewer where the step has more than 10000 ops"},
                 {"least", "64KiB", "bytes", "smaller buffers stay"},
                 {"fold", "off", "on/off", "decide for all like layers together first"}},
     .make = [](const Options& options) { return std::make_unique<Tide>(options); }}};

}  // namespace
}  // namespace tidepool
