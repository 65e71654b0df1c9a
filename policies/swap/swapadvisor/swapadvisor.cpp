#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "policies/planning/eviction/tournament.hpp"
#include "policies/planning/eviction/victims.hpp"
#include "policies/planning/gaps/schedule.hpp"
#include "policies/planning/gaps/schedule_early.hpp"
#include "policies/swap/swapadvisor/slot_pool.hpp"
#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/option_values.hpp"
#include "simulator/ordered_step.hpp"
#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "traces/step/dependencies.hpp"

namespace tidepool {
namespace {

/// Swaps on a pool of slots: if a class is full, evicts the tensor in its slots whose next use is the latest.
class SlotSwapper : public Policy, public Explainer {
 public:
  SlotSwapper() = default;
  SlotSwapper(SlotClasses classes, std::vector<Action> draft)
      : classes_{std::move(classes)}, draft_{std::move(draft)} {}

  std::vector<Action> plan(const Trace&, const RunSpec&) override { return draft_; }
  std::unique_ptr<Pool> bring_pool() override {
    if (classes_.empty()) return {};
    return std::make_unique<SlotPool>(classes_);
  }

  void start(const View& view) override {
    in_slots_.resize(std::max<std::size_t>(classes_.size(), 1));
    for (Tournament<FurthestFirst>& each : in_slots_) each.reset(view.trace().versions().size());
  }
  void make_room(const View& view, const Request& request, std::vector<Action>& out) override {
    view.drain_changes([&](VersionId v) {
      if (view.trace().version(v).kind == VersionKind::kView) return;
      Tournament<FurthestFirst>& slots = in_slots_[slots_of(view.size(v))];
      if (view.evictable(v))
        slots.set(v.index(), FurthestFirst{view, v});
      else
        slots.clear(v.index());
    });
    ++evaluations_;
    const std::uint32_t last = in_slots_[slots_of(request.size)].winner();
    if (last != Tournament<FurthestFirst>::kNone) out.push_back({.verb = Verb::kSwapOut, .subject = last});
  }
  Ranking ranking(const View&, const Request& request) override {
    return ranking_of(in_slots_[slots_of(request.size)]);
  }
  std::int64_t cost_evaluations() const override { return evaluations_; }

 protected:
  SlotClasses classes_;  // none: the run's own pool
  std::vector<Action> draft_;
  std::int64_t evaluations_ = 0;

 private:
  std::size_t slots_of(Bytes size) const {
    return classes_.empty() ? 0 : std::min(class_of(classes_, size), classes_.size() - 1);
  }

  std::vector<Tournament<FurthestFirst>> in_slots_;  // by class
};

/// SwapAdvisor's genetic search over the order of ops and the allocation of memory. with=swap keeps the order.
///
/// Memory is divided into slots of several size classes (see SlotPool). An allocation says which sizes form a class,
/// and how slots beyond the needs of single ops are distributed among classes. Swaps follow from an order and an
/// allocation: if a class is full, Belady's rule chooses the tensor to swap out. The tensor leaves after its latest
/// use, and comes back as soon as its class has a free slot again. The fitness is the simulated time of the run itself.
/// Parents are selected by tournament; a child replaces the worst individual if it is better.
///   allocation  is crossed over at one point, and mutated
///   order       begins, in the child, with ops of one parent, up to a random point; the other ops follow in the
///               order of the other parent. A mutation builds the order once more: it takes the ready op that comes
///               first or, with a small probability, a random ready op. Both keep the dependencies (see Dependencies)
/// The recorded order stays if the step fits in it. If the step ends well with no allocation that was tried, the order
/// stays too, and only Belady's rule is followed, on the run's own pool.
///
/// Paper: Huang, Jin and Li, "SwapAdvisor: Push Deep Learning Beyond the GPU Memory Limit via Smart Swapping", ASPLOS
/// 2020, from its abstract and other descriptions; rates, selection, population and first individuals are Tidepool's.
///
/// Deterministic for a seed. Cost: at most two simulations for each of at most `effort` individuals.
class SwapAdvisor final : public SlotSwapper {
 public:
  explicit SwapAdvisor(const Options& options)
      : effort_{count_of<std::int64_t>("swapadvisor", options, "effort", 1'000'000'000)},
        granule_{size_of("swapadvisor", options, "granule")},
        orders_{options.word("with") == "order+swap"},
        random_{options.seed()} {}

  std::shared_ptr<const OrderedStep> reorder(const Trace& trace, const RunSpec& spec) override {
    if (!orders_ || !spec.assume.name.empty() || !can_be_reordered(trace) || trace.ideal_peak() <= spec.capacity)
      return {};
    const Dependencies dependencies = dependencies_of(trace);
    const std::shared_ptr<const OrderedStep> step = search(trace, spec, &dependencies);
    planned_ = step ? &step->trace() : &trace;
    return step;
  }

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    if (trace.ops().empty()) return {};
    if (planned_ != &trace && trace.ideal_peak() > spec.capacity) search(trace, spec, nullptr);
    return draft_;
  }

 private:
  enum Rank : std::uint8_t { kFits, kFails, kTooLarge };
  using Order = std::vector<std::uint32_t>;

  struct Individual {
    std::vector<bool> ends;     // by size: a class ends with it; always true for the last size
    std::vector<double> share;  // by size: the share that the class ending with it has in the slots beyond the least
    Order order = {};           // none: the recorded one
    Rank rank = kTooLarge;
    std::int64_t cost = 0;  // if it fits: ns; if the run fails: minus the ns that it reached; else missing bytes
    SlotClasses classes = {};
    std::vector<Action> draft = {};
  };

  /// Finds the best individual, and takes over its classes and draft.
  /// @param dependencies  none: the order stays
  /// @return  the step in the best order; none: the recorded order
  std::shared_ptr<const OrderedStep> search(const Trace& trace, const RunSpec& spec, const Dependencies* dependencies) {
    const std::vector<Bytes> sizes = SlotDemand{trace, spec.assume, granule_}.sizes();
    const auto step_of = [&](const Order& order) -> std::shared_ptr<const OrderedStep> {
      if (order.empty()) return {};
      return std::make_shared<OrderedStep>(trace, StepOrder{"swapadvisor", false, order});
    };
    std::int64_t left = effort_;
    const auto judged = [&](Individual individual) {
      ++evaluations_;
      --left;
      const std::shared_ptr<const OrderedStep> step = step_of(individual.order);
      return judge(step ? step->trace() : trace, spec, granule_, std::move(individual));
    };
    std::vector<Individual> population;
    for (const double ratio : {1.1, 1.0, 1.5, 1.25, 1.05, 2.0, 4.0, 1e18}) {
      if (left == 0) break;
      Individual first = geometric(sizes, ratio);
      if (dependencies != nullptr && !population.empty()) mutate(first.order, *dependencies);
      population.push_back(judged(std::move(first)));
    }
    while (left > 0) {
      const Individual& second = pick(population);  // not as arguments of cross(), which are evaluated in any order
      const Individual& first = pick(population);
      Individual child = cross(first, second);
      mutate(child);
      if (dependencies != nullptr) {
        child.order = cross(first.order, second.order, trace.ops().size());
        mutate(child.order, *dependencies);
      }
      child = judged(std::move(child));
      const auto worst = std::max_element(population.begin(), population.end(), fitter);
      if (fitter(child, *worst)) *worst = std::move(child);
    }
    const auto best = std::min_element(population.begin(), population.end(), fitter);
    if (best->rank != kFits) return {};
    classes_ = best->classes;
    draft_ = best->draft;
    return step_of(best->order);
  }

  static constexpr std::size_t kChanges = 3;  // expected number of mutations of each kind

  static bool fitter(const Individual& a, const Individual& b) {
    return std::tie(a.rank, a.cost) < std::tie(b.rank, b.cost);
  }

  /// An allocation in which the sizes of each class differ by at most a factor of about `ratio`.
  static Individual geometric(const std::vector<Bytes>& sizes, double ratio) {
    Individual made{std::vector<bool>(sizes.size()), std::vector<double>(sizes.size(), 1)};
    double first = 0;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      const auto size = static_cast<double>(sizes[i].count());
      if (first > 0 && size * ratio >= first) continue;
      made.ends[i] = true;
      first = size;
    }
    return made;
  }

  std::size_t draw(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  const Individual& pick(const std::vector<Individual>& population) {
    const Individual& a = population[draw(population.size())];
    const Individual& b = population[draw(population.size())];
    return fitter(a, b) ? a : b;
  }

  Individual cross(const Individual& a, const Individual& b) {
    Individual child{a.ends, a.share};
    for (std::size_t i = draw(a.ends.size()); i < a.ends.size(); ++i) {
      child.ends[i] = b.ends[i];
      child.share[i] = b.share[i];
    }
    return child;
  }

  /// An order: the ops of `a` up to a random point, then the others as in `b`.
  Order cross(const Order& a, const Order& b, std::size_t ops) {
    const std::size_t point = draw(ops + 1);
    if (a.empty() && b.empty()) return {};
    const auto at = [](const Order& order, std::size_t i) {
      return order.empty() ? static_cast<std::uint32_t>(i) : order[i];
    };
    std::vector<bool> taken(ops);
    Order child;
    const auto take = [&](std::uint32_t op) {
      if (!taken[op]) child.push_back(op);
      taken[op] = true;
    };
    for (std::size_t i = 0; i < point; ++i) take(at(a, i));
    for (std::size_t i = 0; i < ops; ++i) take(at(b, i));
    return child;
  }

  /// Lists the ops again in their order, but now and then takes a random op among the ready ones.
  void mutate(Order& order, const Dependencies& dependencies) {
    const std::size_t ops = dependencies.before.size();
    if (order.empty())
      for (std::uint32_t op = 0; op < ops; ++op) order.push_back(op);
    Order place(ops);
    std::vector<std::size_t> waits(ops);
    std::set<std::uint32_t> ready;  // places in the old order
    for (std::uint32_t i = 0; i < ops; ++i) place[order[i]] = i;
    for (std::uint32_t op = 0; op < ops; ++op)
      if ((waits[op] = dependencies.before[op].size()) == 0) ready.insert(place[op]);
    Order mutated;
    while (!ready.empty()) {
      auto next = ready.begin();
      if (draw(ops) < kChanges) std::advance(next, draw(ready.size()));
      const std::uint32_t op = order[*next];
      ready.erase(next);
      mutated.push_back(op);
      for (const std::uint32_t after : dependencies.after[op])
        if (--waits[after] == 0) ready.insert(place[after]);
    }
    order = std::move(mutated);
  }

  void mutate(Individual& allocation) {
    const std::size_t last = allocation.ends.size() - 1;
    for (std::size_t i = 0; i <= last; ++i) {
      if (i < last && draw(last) < kChanges) allocation.ends[i] = !allocation.ends[i];
      if (draw(last + 1) < kChanges) allocation.share[i] *= std::exp2(static_cast<double>(draw(41)) / 10 - 2);
    }
  }

  /// Distributes the capacity. @return  false if it is not enough for single ops
  static bool share_out(const SlotDemand& demand, Bytes capacity, Individual& allocation) {
    std::vector<double> shares;
    allocation.classes.clear();
    for (std::size_t i = 0; i < allocation.ends.size(); ++i) {
      if (!allocation.ends[i]) continue;
      allocation.classes.push_back({demand.sizes()[i], 0});
      shares.push_back(allocation.share[i]);
    }
    SlotClasses& classes = allocation.classes;
    const std::vector<std::uint32_t> least = demand.least(classes);
    const std::vector<std::vector<Bytes>> live = demand.live(classes);
    std::vector<std::uint32_t> most;
    Bytes left = capacity;
    double wanted = 0;
    for (std::size_t c = 0; c < classes.size(); ++c) {
      most.push_back(
          std::max(static_cast<std::uint32_t>(std::max_element(live[c].begin(), live[c].end())->count()), least[c]));
      classes[c].count = least[c];
      left -= classes[c].slot * least[c];
      wanted += shares[c] * static_cast<double>((classes[c].slot * (most[c] - least[c])).count());
    }
    allocation.cost = -left.count();
    if (left < Bytes{}) return false;
    const double part = wanted > 0 ? std::min(static_cast<double>(left.count()) / wanted, 1e9) : 0;
    for (std::size_t c = 0; c < classes.size(); ++c) {
      const double more = std::min(part * shares[c], 1.0) * static_cast<double>(most[c] - least[c]);
      classes[c].count += static_cast<std::uint32_t>(more);
      left -= classes[c].slot * static_cast<std::int64_t>(static_cast<std::uint32_t>(more));
    }
    for (std::size_t c = classes.size(); c-- > 0;)  // bytes left by rounding and full classes: largest class first
      while (classes[c].count < most[c] && classes[c].slot <= left) ++classes[c].count, left -= classes[c].slot;
    return true;
  }

  static Result run(const Trace& trace, const RunSpec& spec, const Individual& allocation, bool keep_plan) {
    std::vector<std::unique_ptr<Policy>> policies;
    policies.push_back(std::make_unique<SlotSwapper>(allocation.classes, allocation.draft));
    RunSpec setting = spec;
    setting.pool = "best-fit";  // not used: the policy brings its own pool
    return simulate_under(trace, setting, std::move(policies), true, keep_plan);
  }

  static Individual judge(const Trace& trace, const RunSpec& spec, Bytes granule, Individual allocation) {
    const SlotDemand demand{trace, spec.assume, granule};
    const std::vector<Gap> gaps = find_gaps(trace, Bytes{}, spec.assume);
    if (!share_out(demand, spec.capacity, allocation)) return allocation;
    allocation.draft.clear();
    const Result on_demand = run(trace, spec, allocation, true);
    allocation.rank = on_demand.outcome == Outcome::kOk ? kFits : kFails;
    allocation.cost = allocation.rank == kFits ? on_demand.totals.makespan.count() : -on_demand.totals.makespan.count();
    allocation.draft = draft(trace, demand, gaps, allocation.classes, on_demand.realised);
    const Result planned = run(trace, spec, allocation, false);
    if (planned.outcome == Outcome::kOk &&
        (allocation.rank != kFits || planned.totals.makespan.count() < allocation.cost)) {
      allocation.rank = kFits;
      allocation.cost = planned.totals.makespan.count();
    } else {
      allocation.draft.clear();
    }
    return allocation;
  }

  /// Plans swaps for the gaps in which the run `on_demand` evicted the tensor.
  static std::vector<Action> draft(const Trace& trace, const SlotDemand& demand, const std::vector<Gap>& gaps,
                                   const SlotClasses& classes, const Plan& on_demand) {
    std::multimap<VersionId, std::uint32_t> of_version;
    std::vector<Gap> slots = gaps;  // the gaps, with a size of one slot each instead of bytes
    for (std::uint32_t i = 0; i < gaps.size(); ++i) {
      slots[i].size = Bytes{1};
      if (!gaps[i].crosses) of_version.emplace(gaps[i].out, i);
    }
    std::vector<std::vector<std::uint32_t>> used(classes.size());
    std::vector<bool> seen(gaps.size());
    for (const Action& action : on_demand.actions) {
      if (action.verb != Verb::kDrop || !action.before.valid()) continue;
      const auto [first, last] = of_version.equal_range(VersionId{action.subject});
      for (auto each = first; each != last; ++each) {
        const Gap& gap = gaps[each->second];
        if (seen[each->second] || action.before.value() <= gap.release || action.before.value() > gap.due) continue;
        seen[each->second] = true;
        used[class_of(classes, gap.size)].push_back(each->second);
      }
    }
    std::vector<std::vector<Bytes>> live = demand.live(classes);
    std::vector<PlannedGap> planned;
    for (std::size_t c = 0; c < classes.size(); ++c) {
      for (const std::uint32_t i : used[c])
        for (std::uint32_t k = gaps[i].release + 1; k < gaps[i].due; ++k) live[c][k] -= Bytes{1};
      const std::vector<PlannedGap> early = schedule_early(slots, used[c], std::move(live[c]), Bytes{classes[c].count});
      planned.insert(planned.end(), early.begin(), early.end());
    }
    return draft_of(gaps, planned, trace.ops().size());
  }

  std::int64_t effort_;
  Bytes granule_;
  bool orders_;
  std::mt19937_64 random_;
  const Trace* planned_ = nullptr;  // the step for which reorder() has found the draft; null: none
};

const RegisterPolicy kSwapadvisor{
    {.name = "swapadvisor",
     .kind = PolicyKind::kSwap,
     .summary = "searches genetically for an order and classes of slots; a full class swaps out the tensor with the "
                "latest next use",
     .paper = "SwapAdvisor: Huang et al., ASPLOS 2020",
     .options = {{"with", "order+swap", "order+swap|swap", "swap: the ops keep the recorded order"},
                 {"effort", "150", "number", "individuals to simulate"},
                 {"granule", "512B", "bytes", "slots are multiples of it"}},
     .make = [](const Options& options) { return std::make_unique<SwapAdvisor>(options); }}};

}  // namespace
}  // namespace tidepool
