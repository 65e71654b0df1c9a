#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "policies/hybrid/tide/best_answer.hpp"
#include "policies/hybrid/tide/later_frees.hpp"
#include "policies/hybrid/tide/order_candidates.hpp"
#include "policies/hybrid/tide/rivals.hpp"
#include "policies/hybrid/tide/robust_answer.hpp"
#include "policies/hybrid/tide/step_search.hpp"
#include "policies/planning/search/answering_planner.hpp"
#include "policies/planning/search/plan_answer.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"
#include "simulator/solvers/robustness.hpp"

namespace tidepool {
namespace {

/// Tidepool's own planner: decides together which content is kept, which is on the host and when, and which is dropped
/// and recomputed.
///   1. Relax: a linear program over time groups and classes of like idle intervals gives the share of each that is
///      copied or dropped (see Relaxation). Its solution is rounded. Eight programs, each with the clock of the plan
///      before.
///   2. Evaluate: a list schedule of the rounded plan gives its time and the issue of each copy (see Evaluator). The
///      engine confirms plans that promise to be the best, with late swap-ins and, if they are slower than evaluated,
///      with early ones.
///   3. Place: where places are planned, the limit of counted bytes goes down until the places of a plan fit (see
///      StepSearch); in pools that choose places themselves, a few lower limits are tried.
///   4. Search: plans by prices, then rounds of local search, each half as long again as the one before (see
///      LocalSearch). Where places are planned, a plan counts only with its places.
/// Plans may also keep small inputs after the program has freed them, so that large content can be recomputed from
/// them: 1 to 3 are repeated for such a step (see with_later_frees), and 4 continues with the better of both.
///
/// `effort` only says how many phases of this fixed sequence are done, so more effort never gives a worse plan. It
/// counts thousands of evaluated ops in 4. The search ends early if the plan has no overhead. On a remaining shortage,
/// the version that costs least per byte and time until its next read is swapped out or dropped.
///
/// `with=swap` copies only. `with=remat` answers with tide-remat. `with=order+...` does all of this for the recorded
/// order and for the best other orders: never worse than without. With robust=r: the answer is the plan that loses the
/// least in its worst scenario around the setting (see scenarios_around), among the best plans found for it and for
/// links slower by r. With rivals=on, every other registered policy that keeps the order of ops is run too, unless a
/// bound says that its kind cannot win: then no policy is better in the same setting. So it is where no plan was found.
/// On several streams, tide-remat is always asked.
///
/// Content that no op reads any more is dropped early if its memory is needed (see find_dead_content).
///
/// Deterministic for a seed: costs are whole nanoseconds, ties go to the lower id. Cost: O(ops log ops) for each
/// evaluation and each run of the engine; the linear programs are near-linear in ops.
class Tide final : public AnsweringPlanner {
 public:
  explicit Tide(const Options& options)
      : effort_{count_of<std::int64_t>("tide", options, "effort", 10'000'000, 0)},
        least_{options.bytes("least")},
        seed_{options.seed()},
        swaps_{may(options, "swap")},
        recomputes_{may(options, "remat")},
        reorders_{may(options, "order")},
        rivals_{options.flag("rivals")},
        robust_{number_of("tide", options, "robust", 0.99)},
        phases_{.relaxation = is_on(options, "relaxation"),
                .prices = is_on(options, "prices"),
                .rounds = is_on(options, "rounds"),
                .lower_limits = is_on(options, "limits")},
        later_frees_{is_on(options, "later-frees")} {}

  /// The order of the fastest plan: the recorded order, or one of order_candidates() that quick plans prefer.
  std::shared_ptr<const OrderedStep> reorder(const Trace& trace, const RunSpec& spec) override {
    constexpr double kMovesOfTry = 33;
    if (!reorders_) return {};
    found_ = best_of_all(trace, spec);
    if (found_->loses_nothing()) return {};
    const auto look = [&](const Trace& step) {
      const std::int64_t full = std::exchange(effort_, 0);
      Result result = find(step, spec).result;
      effort_ = full;
      return result;
    };
    const auto improves = [&](const Trace& step) {
      BestAnswer other = best_of_all(step, spec);
      return better(other.result, found_->result) ? (found_ = std::move(other), true) : false;
    };
    const auto moves = static_cast<int>(std::min(kMovesOfTry * static_cast<double>(effort_), 1e9));
    return best_order(order_candidates(trace, spec, moves), look, improves);
  }

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    const BestAnswer best = found_ ? *std::exchange(found_, std::nullopt) : best_of_all(trace, spec);
    RunSpec setting = spec;
    setting.overhead_limit = best.answer.overhead_limit;
    return answer_with(best.answer.make, trace, setting);
  }

  std::int64_t cost_evaluations() const override { return judged_ + AnsweringPlanner::cost_evaluations(); }

 private:
  static constexpr std::int64_t kFirstRound = 100;  // moves
  static constexpr std::size_t kFew = 12;           // answers that robust= compares

  static bool may(const Options& options, std::string_view what) {
    return options.word("with").find(what) != std::string::npos;
  }
  static bool is_on(const Options& options, std::string_view phase) {
    return options.word("without").find(phase) == std::string::npos;
  }

  OnDemand on_demand() const { return recomputes_ ? OnDemand::kCopyOrDrop : OnDemand::kCopy; }

  BestAnswer best_of_all(const Trace& trace, const RunSpec& spec) {
    BestAnswer best = find(trace, spec);
    // Where ops of one stream wait for the places of another, plans without copies may lose less.
    if (trace.data().streams.size() > 1 && swaps_ && recomputes_ && !best.loses_nothing()) {
      BestAnswer other = answer_of("tide-remat", trace, spec);
      best.offer(other.result, std::move(other.answer));
    }
    // Another policy may find a plan where this search fails.
    const bool failed = best.result.outcome == Outcome::kOutOfMemory;
    if (failed || (rivals_ && !best.loses_nothing())) compare_with_rivals(best, trace, spec);
    if (robust_ == 0 || best.result.outcome != Outcome::kOk || best.result.totals.eviction_count == 0) return best;
    RunSpec slower = spec;
    slower.machine = with_slower_links(spec.machine, robust_);
    const BestAnswer careful = find(trace, slower);
    best.answer = most_robust(best, careful, trace, spec, robust_, seed_, judged_);
    return best;
  }

  void compare_with_rivals(BestAnswer& best, const Trace& trace, const RunSpec& spec) {
    Rivals rivals{trace, spec, "tide", swaps_, recomputes_};
    if (std::optional<Rivals::Winner> winner = rivals.beat(best.result)) {
      best.others.push_back(std::move(best.answer));
      best.answer = {std::move(winner->make), winner->overhead_limit};
    }
    judged_ += rivals.judged();
  }

  /// The plan that takes the least time.
  BestAnswer find(const Trace& trace, const RunSpec& spec) {
    if (!swaps_) return answer_of("tide-remat", trace, spec);
    std::vector<DeadContent> dead = dead_content(trace, spec);
    const GapDraft nothing{drops_of(dead), {}};
    const auto follow = [nothing, on_demand = on_demand()] { return follow_draft(nothing, on_demand); };
    BestAnswer best{{}, {follow, spec.overhead_limit}};
    best.result.outcome = Outcome::kOutOfMemory;
    const bool exceeds = trace.ideal_peak() > spec.capacity;
    if (trace.ops().empty() || !exceeds) best.result = judge(trace, spec, follow());
    // A step whose bytes fit may still find no places.
    const bool finds_places = best.result.outcome == Outcome::kOk && best.result.totals.eviction_count == 0;
    if (trace.ops().empty() || finds_places || best.loses_nothing()) return best;
    search(best, trace, spec, std::move(dead));
    if (best.result.outcome != Outcome::kOk && exceeds) {
      best.result = judge(trace, spec, follow());
      best.answer = {follow, spec.overhead_limit};
    }
    best.offer_copies_on_demand(trace, spec);
    return best;
  }

  /// The answer of another policy.
  BestAnswer answer_of(const char* name, const Trace& trace, const RunSpec& spec) const {
    const auto make = [name, seed = seed_] {
      const PolicyInfo& info = find_policy(name);
      return info.make(Options{info.name, info.options, {}, seed});
    };
    std::unique_ptr<Policy> policy = make();
    const auto* const answering = dynamic_cast<const AnsweringPlanner*>(policy.get());
    const auto found = answering != nullptr ? answering->maker() : nullptr;
    Result result = judge(trace, spec, std::move(policy));
    if (found && *found) return {std::move(result), {*found, spec.overhead_limit}};
    return {std::move(result), {make, spec.overhead_limit}};
  }

  /// The dead content to drop: all of it if that lowers a load above the capacity, else none; none under a paper's
  /// assumptions.
  static std::vector<DeadContent> dead_content(const Trace& trace, const RunSpec& spec) {
    if (!spec.assume.name.empty() || trace.ops().empty()) return {};
    std::vector<DeadContent> dead = find_dead_content(trace);
    const StepCircle with = step_circle(trace), without = step_circle(trace, SlotBegins::kBeforeFrees, dead);
    for (std::size_t k = 0; k < with.size(); ++k)
      if (with.load[k] > spec.capacity && without.load[k] < with.load[k]) return dead;
    return {};
  }

  /// Searches the step, and the step with later frees if that begins better.
  void search(BestAnswer& best, const Trace& trace, const RunSpec& spec, std::vector<DeadContent> dead) {
    StepSearch as_recorded{trace, spec, recomputes_, least_, dead, seed_, phases_};
    as_recorded.start();
    const std::optional<Trace> later = later_step(trace, spec, as_recorded);
    std::optional<StepSearch> with_later;
    if (later) {
      // Content that lives longer now is dead no earlier.
      std::erase_if(dead, [&](const DeadContent& each) {
        return freed_at(trace, each.version) != freed_at(*later, each.version);
      });
      with_later.emplace(*later, spec, recomputes_, least_, std::move(dead), seed_, phases_, &trace);
      with_later->start();
    }
    const auto time = [](const StepSearch& each) {
      return each.runs().best() ? each.runs().best()->result.totals.makespan : PoolRuns::kFailed;
    };
    const bool takes_later = with_later && time(*with_later) < time(as_recorded);
    go_on(takes_later ? *with_later : as_recorded, trace.ops().size());
    offer(best, as_recorded, spec);
    if (takes_later) offer(best, *with_later, spec);
    judged_ += as_recorded.runs().runs() + (with_later ? with_later->runs().runs() : 0);
  }

  /// The phases after the start, as many as the effort pays.
  void go_on(StepSearch& search, std::size_t ops) const {
    std::int64_t left = effort_ * 1'000 / static_cast<std::int64_t>(ops);
    if (left < StepSearch::kPricedEvaluations) return;
    left -= StepSearch::kPricedEvaluations;
    search.add_priced();
    for (std::int64_t moves = kFirstRound; moves <= left && !search.loses_nothing(); moves += moves / 2) {
      left -= moves;
      search.round(moves);
    }
  }

  std::optional<Trace> later_step(const Trace& trace, const RunSpec& spec, const StepSearch& search) const {
    const bool whole_plans = spec.policy.policies.size() <= 1 && (spec.steady || spec.iterations == 1);
    const Bytes excess = trace.ideal_peak() - spec.capacity;
    if (!later_frees_ || !recomputes_ || search.loses_nothing() || !spec.assume.name.empty() || !whole_plans ||
        excess <= Bytes{})
      return std::nullopt;
    return with_later_frees(trace, excess / 10);
  }

  static std::uint32_t freed_at(const Trace& trace, VersionId version) {
    const BufferId buffer = trace.version(version).buffer;
    std::uint32_t op = 0;
    for (const Event& event : trace.events()) {
      if (event.kind == EventKind::kRun) op = event.id + 1;
      if (event.kind == EventKind::kFree && event.id == buffer.value()) return op;
    }
    return ~std::uint32_t{0};
  }

  static void offer(BestAnswer& best, const StepSearch& search, const RunSpec& spec) {
    const PoolRuns& runs = search.runs();
    const std::vector<PoolRuns::Found>& earlier = runs.earlier();
    for (std::size_t i = earlier.size() - std::min(earlier.size(), kFew); i < earlier.size(); ++i)
      best.others.push_back({earlier[i].make, spec.overhead_limit});
    if (runs.best()) best.offer(runs.best()->result, {runs.best()->make, spec.overhead_limit});
  }

  std::int64_t effort_;
  Bytes least_;
  std::uint64_t seed_;
  bool swaps_, recomputes_, reorders_, rivals_;
  double robust_;
  Phases phases_;
  bool later_frees_;
  std::optional<BestAnswer> found_;  // by reorder(), for plan()
  std::int64_t judged_ = 0;
};

const RegisterPolicy kTide{
    {.name = "tide",
     .kind = PolicyKind::kHybrid,
     .summary = "plans what is kept, copied and recomputed, and where, from prices of memory and links",
     .paper = "Tidepool",
     .options = {{"with", "swap+remat", "swap|remat|swap+remat|order+swap|order+remat|order+swap+remat",
                  "what it may do; with order, it also tries other orders of the ops"},
                 {"effort", "2000", "number",
                  "thousands of ops to evaluate in the search after the first plans; more never gives a worse plan"},
                 {"least", "64KiB", "bytes", "smaller buffers stay"},
                 {"without", "nothing", "nothing|relaxation|prices|rounds|limits|later-frees",
                  "a phase that is left out, to show what it pays"},
                 {"rivals", "off", "on/off", "also run every other policy; if one is faster, its plan is the answer"},
                 {"robust", "0", "number",
                  "take the plan that loses least if ops and links differ by up to this share, also among plans for "
                  "links slower by it; 0: the fastest plan"}},
     .make = [](const Options& options) { return std::make_unique<Tide>(options); }}};

}  // namespace
}  // namespace tidepool
