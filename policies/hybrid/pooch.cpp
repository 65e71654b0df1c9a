#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "policies/planning/eviction/victims.hpp"
#include "policies/planning/gaps/feature_maps.hpp"
#include "policies/planning/gaps/gap_draft.hpp"
#include "policies/planning/gaps/schedule_early.hpp"
#include "policies/planning/remat/draft.hpp"
#include "policies/planning/remat/lineage.hpp"
#include "simulator/engine/boundary.hpp"
#include "simulator/engine/exposed_copies.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// PoocH, profiling-based out-of-core hybrid: each feature map is kept, swapped or recomputed. The simulator takes the
/// place of its timeline: every classification is judged by simulating the run itself, with swap-outs at the release
/// and swap-ins in the order in which they are due, as early as memory allows.
///
///   1. All maps are swapped: this run is the profile. L_O contains the maps whose swap-outs make ops wait, L_I those
///      whose swap-ins make ops wait. Only these maps can gain by being kept. Every combination of keeping or swapping
///      the first `exhaustive` maps of L_I that are due (those near the output) is tried. Then, greedily, the map of
///      L_O and L_I with the longest waits is kept if the step takes less time with it.
///   2. Among the maps that are still swapped, the one with the largest
///        r(X) = time that ops wait for the copies of X / time of the ops that X is recomputed by
///      is recomputed instead if the step takes less time. r is computed again after each replacement, since it depends
///      on the other recomputed maps.
///
/// A pool with addresses cannot place every swap-in for which the sum of bytes leaves room, and evictions for such a
/// swap-in cost more than its early copy saves. So searches 1 and 2 are made up to `rooms` times: swap-ins may fill the
/// capacity, 9/10 of it, 8/10 and so on. The best result is taken. These repetitions are Tidepool's addition.
///
/// On a remaining shortage the version with the latest next read is swapped out; PoocH would refuse the plan.
///
/// Paper: Ito, Imai, Le Duc, Negishi, Kawachiya, Matsumiya and Endo, "Profiling based Out-of-core Hybrid Method for
/// Large Neural Networks", PPoPP 2019 (poster), arXiv 1907.05013. The profile and the greedy searches, first for maps
/// to keep and then for maps to recompute, are from the abstract and from other descriptions. Which maps are searched
/// exhaustively, and how many, could not be looked up.
///
/// Cost: at most `effort` simulations, and at most about a million simulated ops, but at least one simulation for each
/// repetition.
class Pooch final : public SwapOutLeast<FurthestFirst> {
 public:
  explicit Pooch(const Options& options)
      : least_{options.bytes("least")},
        exhaustive_{count_of("pooch", options, "exhaustive", 12, 0)},
        rooms_{count_of<int>("pooch", options, "rooms", 9)},
        effort_{count_of<std::int64_t>("pooch", options, "effort", 1'000'000'000, 0)} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    if (trace.ops().empty() || trace.ideal_peak() <= spec.capacity) return {};
    gaps_ = find_gaps(trace, least_, spec.assume);
    const std::vector<std::uint32_t> maps = feature_maps(trace, gaps_);
    GapPlan plan;
    std::optional<Result> best;
    for (int i = 0; i < rooms_ && !(best && free(*best)); ++i) {
      const std::int64_t most =
          std::min(effort_, kMostOps / (static_cast<std::int64_t>(trace.ops().size()) * likely_iterations(spec)));
      const std::int64_t effort = std::max<std::int64_t>((most - judged_) / (rooms_ - i), 1);
      Search search{trace, spec, gaps_, maps, spec.capacity / 10 * (10 - i), effort};
      search.keep_combinations(exhaustive_);
      search.keep_greedily();
      search.recompute_greedily();
      judged_ += search.judged();
      if (best && !better(search.result(), *best)) continue;
      best = search.result();
      plan = search.plan();
    }
    GapDraft draft = draft_of(gaps_, plan, trace.ops().size());
    drops_ = Draft{std::move(draft.drops)};
    return std::move(draft.copies);
  }
  void start(const View& view) override {
    drops_.start();
    SwapOutLeast<FurthestFirst>::start(view);
  }
  void before_run(const View& view, OpId op, std::vector<Action>& out) override { drops_.due(view, op, out); }
  bool follows_plan() const override { return true; }

  std::int64_t cost_evaluations() const override { return judged_ + SwapOutLeast<FurthestFirst>::cost_evaluations(); }

 private:
  static constexpr std::int64_t kMostOps = 1'000'000;

  static bool free(const Result& result) {
    return result.outcome == Outcome::kOk && result.totals.makespan <= result.baseline;
  }

  enum class Class : std::uint8_t { kKeep, kSwap, kRecompute };

  class Search {
   public:
    Search(const Trace& trace, const RunSpec& spec, const std::vector<Gap>& gaps, std::vector<std::uint32_t> maps,
           Bytes room, std::int64_t effort)
        : trace_{trace},
          spec_{spec},
          gaps_{gaps},
          maps_{std::move(maps)},
          room_{room},
          effort_{effort},
          circle_{step_circle(trace)},
          lineage_{trace},
          classes_(maps_.size(), Class::kSwap),
          tried_(maps_.size()) {
      result_ = run(classes_);
      profile();
    }

    void keep_combinations(std::size_t most) {
      std::vector<std::size_t> near;  // maps_ is in the order of due ops: those near the output come first
      for (std::size_t i = 0; i < maps_.size() && near.size() < most; ++i)
        if (exposed_.in[version(i).index()] > Nanos{}) near.push_back(i);
      const std::vector<Class> all_swapped = classes_;
      for (std::size_t kept = 1; kept < std::size_t{1} << near.size() && !over(); ++kept) {
        std::vector<Class> classes = all_swapped;
        for (std::size_t bit = 0; bit < near.size(); ++bit)
          if ((kept >> bit & 1) != 0) classes[near[bit]] = Class::kKeep;
        take_if_better(std::move(classes));
      }
      for (const std::size_t i : near) tried_[i] = true;
    }

    void keep_greedily() {
      replace(Class::kKeep, [&](std::size_t i) { return static_cast<double>(exposed_.of(version(i)).count()); });
    }

    void recompute_greedily() {
      std::fill(tried_.begin(), tried_.end(), false);
      replace(Class::kRecompute, [&](std::size_t i) {
        const Nanos exposed = exposed_.of(version(i));
        if (exposed <= Nanos{}) return 0.0;
        const std::optional<Nanos> again = lineage_.time(version(i), gap(i).due);
        return again ? static_cast<double>(exposed.count()) /
                           static_cast<double>(std::max<std::int64_t>(again->count(), 1))
                     : 0.0;
      });
    }

    GapPlan plan() const { return plan_of(classes_); }
    const Result& result() const { return result_; }
    std::int64_t judged() const { return judged_; }

   private:
    const Gap& gap(std::size_t i) const { return gaps_[maps_[i]]; }
    VersionId version(std::size_t i) const { return gap(i).out; }
    bool over() const { return judged_ >= effort_ || free(result_); }

    GapPlan plan_of(const std::vector<Class>& classes) const {
      GapPlan plan;
      std::vector<std::uint32_t> swapped, absent;
      for (std::size_t i = 0; i < maps_.size(); ++i) {
        if (classes[i] != Class::kKeep) absent.push_back(maps_[i]);
        if (classes[i] == Class::kSwap) swapped.push_back(maps_[i]);
        if (classes[i] == Class::kRecompute) plan.dropped.push_back(maps_[i]);
      }
      plan.copied = schedule_early(gaps_, std::move(swapped), load_without(circle_, gaps_, absent), room_);
      return plan;
    }

    Result run(const std::vector<Class>& classes) {
      const bool can_end = judged_ > 0 && result_.outcome == Outcome::kOk;
      const std::optional<Nanos> matters_to = can_end ? std::optional{result_.totals.makespan} : std::nullopt;
      ++judged_;
      GapDraft draft = draft_of(gaps_, plan_of(classes), trace_.ops().size());
      return judge(trace_, spec_, follow_draft(std::move(draft), OnDemand::kCopy), true, matters_to);
    }

    bool take_if_better(std::vector<Class> classes) {
      Result result = run(classes);
      if (!better(result, result_)) return false;
      result_ = std::move(result);
      classes_ = std::move(classes);
      profile();
      return true;
    }

    void profile() {
      exposed_ = exposed_copies(trace_, spec_, result_.realised);
      for (std::size_t i = 0; i < maps_.size(); ++i)
        if (classes_[i] == Class::kRecompute)
          lineage_.drop(version(i), gap(i).release, gap(i).due);
        else
          lineage_.keep(version(i));
    }

    /// Tries to turn swapped maps into class `into` while tries are left, the untried map with the largest value first.
    template <class Value>
    void replace(Class into, Value value) {
      while (!over()) {
        std::size_t best = maps_.size();
        double most = 0;
        for (std::size_t i = 0; i < maps_.size(); ++i) {
          if (classes_[i] != Class::kSwap || tried_[i]) continue;
          if (const double each = value(i); each > most) best = i, most = each;
        }
        if (best == maps_.size()) return;
        tried_[best] = true;
        std::vector<Class> classes = classes_;
        classes[best] = into;
        take_if_better(std::move(classes));
      }
    }

    const Trace& trace_;
    const RunSpec& spec_;
    const std::vector<Gap>& gaps_;
    std::vector<std::uint32_t> maps_;
    Bytes room_;  // bytes that swap-ins may fill
    std::int64_t effort_, judged_ = 0;
    StepCircle circle_;
    Lineage lineage_;
    std::vector<Class> classes_;  // by map, in the best result
    std::vector<bool> tried_;     // by map
    Result result_;               // of the best classes
    ExposedCopies exposed_;       // of the best classes
  };

  Bytes least_;
  std::size_t exhaustive_;
  int rooms_;
  std::int64_t effort_, judged_ = 0;
  std::vector<Gap> gaps_;
  Draft drops_;
};

const RegisterPolicy kPooch{
    {.name = "pooch",
     .kind = PolicyKind::kHybrid,
     .summary =
         "swaps maps saved for the backward phase; then keeps or recomputes those that ops wait for, by simulation",
     .paper = "PoocH: Ito et al., PPoPP 2019 (poster), arXiv 1907.05013",
     .options =
         {{"effort", "1000", "number",
           "most classifications to simulate; fewer if these are more than about 10^6 ops in all"},
          {"exhaustive", "4", "number", "maps near the output of which all combinations are tried, up to 12"},
          {"rooms", "5", "number",
           "searches, at most 9: swap-ins may fill the capacity, then 9/10 of it, then 8/10, ...; 1: as in the paper"},
          {"least", "64KiB", "bytes", "smaller buffers stay"}},
     .make = [](const Options& options) { return std::make_unique<Pooch>(options); }}};

}  // namespace
}  // namespace tidepool
