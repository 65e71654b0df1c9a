#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "policies/planning/gaps/realised_step.hpp"
#include "policies/planning/gaps/trials.hpp"
#include "policies/planning/search/answering_planner.hpp"
#include "policies/planning/search/best_answer.hpp"
#include "policies/planning/search/copy_selections.hpp"
#include "policies/planning/search/exact_plan.hpp"
#include "policies/planning/search/fluid_drops.hpp"
#include "policies/planning/search/give_up.hpp"
#include "policies/planning/search/improve.hpp"
#include "policies/planning/search/improve_placed.hpp"
#include "policies/planning/search/later_frees.hpp"
#include "policies/planning/search/limit_search.hpp"
#include "policies/planning/search/mixed_selections.hpp"
#include "policies/planning/search/order_candidates.hpp"
#include "policies/planning/search/placement.hpp"
#include "policies/planning/search/rivals.hpp"
#include "policies/planning/search/robust_answer.hpp"
#include "policies/planning/search/run_places.hpp"
#include "policies/planning/search/tied_search.hpp"
#include "simulator/engine/boundary.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"
#include "simulator/solvers/robustness.hpp"

namespace tidepool {
namespace {

/// Tidepool's own planner: decides together which versions are kept, which are on the host and when, and which are
/// dropped and recomputed.
///   1. Select and schedule: a price on every copied byte decides between copying and dropping (see select_by_price).
///      Prices are tried over the whole range first and then around the best. Each selection is repeated with lower
///      limits: less the bytes of its own copies under way and of versions that are recomputed early.
///   2. Improve: the best plan is changed by one or two gaps at a time. Each change is judged by simulating the run.
///      Every draft is scheduled as late as the periodic steady state allows.
///   3. Place: on a pool that is one arena (best-fit, first-fit), 1 and 2 count bytes only, up to a limit. Then the
///      lifetimes of places in the best plan are packed offline. If the places exceed the capacity, a search with new
///      plans finds the highest limit at which they fit. Then the best plan is changed as in 2, where bytes above the
///      capacity cost time. Each plan is also tried with the pool's own places; with=swap also tries less memory.
///   4. Compare: every other registered policy that keeps the order of ops is tried too, unless a bound says that its
///      kind cannot win. If one is better, it is the answer. So tide is never worse than any of them in its setting.
///   5. With robust=r: the best plans of each search so far, and those that 1 to 3 find for links slower by r, are
///      executed again as planned in scenarios around the setting (see scenarios_around). The answer is the plan that
///      loses the least in its worst scenario, though another may be faster without deviations.
/// The search ends early if the plan has no overhead, and does not begin if a quick bound says that no plan exists. On
/// a remaining shortage, the version that costs least per byte and time until its next read is swapped out or dropped.
///
/// `with=swap` selects gaps by every score, and by the share of each gap that the best fluid plan copies (see
/// fluid_bound). It selects them again by the prices of the copies that the best of these plans waited for (see
/// try_feedback). By counted bytes, it then leaves out each copy in turn (see give_up_copies). Changes use op times of
/// the best run. On a shortage, the version with the latest next read is swapped out. `with=remat` does only step 4.
///
/// For steps of many layers, a selection for all similar layers at once (see TiedSearch) comes before 1.
///
/// Versions that no op reads any more are dropped early if their memory is needed (see find_dead_content).
///
/// Steps of up to about a thousand ops are searched again. If the best plan takes more than 1.5 times as long as a run
/// without limit, two searches plan with slower ops: more copies fit into the time of the plan than into that of the
/// step without limit. Another search plans copies for the time at which an op's memory is freed, which sometimes gains
/// and sometimes costs time (see SlotBegins). The first search and this one are repeated without dropping dead content,
/// since other content may be recomputed from it. Then at most four searches plan copies for the times of the ops in
/// the best plan so far, until two in a row gain nothing.
///
/// Steps of more ops are searched once. If a quick bound says that every plan takes more than 1.1 times as long, this
/// search has three rounds. The first one also solves linear programs for the copies beside given drops, and changes
/// the drops by the prices of memory in these programs (see try_fluid_drops). The second and third plan copies for the
/// times of the ops in the best plan so far.
///
/// Plans may also keep small inputs after the program has freed them, so that large content can be recomputed from
/// them: the search is repeated for such a step (see with_later_frees).
///
/// Steps of a few ops are also solved exactly (see exact_answer): if the best of all plans is faster, it is the answer,
/// unless robust= is given.
///
/// `with=order+...` does all of this for the recorded order and for the best other orders: never worse than without.
///
/// Deterministic for a seed. Cost, in multiples of `effort` simulations: at most 4 for steps 1 and 2, 2 more with
/// slower ops, 4 by the best plan's times, 2 with later frees; as many again for step 3 if packing is hard; all this
/// twice with fold=on, and again with robust=.
class Tide final : public AnsweringPlanner {
 public:
  explicit Tide(const Options& options)
      : effort_{count_of<std::int64_t>("tide", options, "effort", 10'000'000, 0)},
        packing_effort_{std::min(static_cast<double>(effort_) / kFewTries, 1.0)},
        least_{options.bytes("least")},
        seed_{options.seed()},
        swaps_{may(options, "swap")},
        recomputes_{may(options, "remat")},
        reorders_{may(options, "order")},
        fold_{options.flag("fold")},
        exact_{options.flag("exact")},
        robust_{number_of("tide", options, "robust", 0.99)} {}

  /// The order of the fastest plan: the recorded order, or one of order_candidates() that quick plans prefer.
  std::shared_ptr<const OrderedStep> reorder(const Trace& trace, const RunSpec& spec) override {
    if (!reorders_) return {};
    found_ = best_of_all(trace, spec);
    if (found_->loses_nothing()) return {};
    const auto look = [&](const Trace& step) {
      const std::int64_t full = std::exchange(effort_, std::min(effort_, std::max<std::int64_t>(effort_ / 10, 20)));
      Result result = find(step, spec, false).result;
      effort_ = full;
      return result;
    };
    const auto improves = [&](const Trace& step) {
      Best other = best_of_all(step, spec);
      return better(other.result, found_->result) ? (found_ = std::move(other), true) : false;
    };
    return best_order(order_candidates(trace, spec, static_cast<int>(kMovesOfTry * effort_)), look, improves);
  }

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    const Best best = found_ ? *std::exchange(found_, std::nullopt) : best_of_all(trace, spec);
    RunSpec setting = spec;
    setting.overhead_limit = best.answer.overhead_limit;
    return answer_with(best.answer.make, trace, setting);
  }

  std::int64_t cost_evaluations() const override { return judged_ + AnsweringPlanner::cost_evaluations(); }

 private:
  static constexpr std::int64_t kMostOps = 3'000'000, kMostOpsOfCopies = 10'000'000, kMostOpsSelected = 2'400'000;
  static constexpr std::int64_t kUsualEffort = 600, kEffortForRivals = 50, kMovesOfTry = 33;
  static constexpr double kFewTries = 20;  // with a smaller effort, searches for places take less effort too
  static constexpr int kLimits = 8, kPrograms = 12;
  static constexpr std::size_t kFew = 12;  // drafts of each search that robust= compares

  using Best = BestAnswer;
  using Answer = BestAnswer::Answer;

  Best best_of_all(const Trace& trace, const RunSpec& spec) {
    Best best = find(trace, spec, effort_ >= kEffortForRivals);
    if (robust_ > 0 && best.result.outcome == Outcome::kOk && best.result.totals.eviction_count > 0)
      best.answer = most_robust(best, trace, spec);
    if (exact_ && robust_ == 0)
      if (std::optional<ExactAnswer> exact = exact_answer(trace, spec, swaps_, recomputes_, best.result)) {
        best.result = exact->result;
        best.answer = {std::move(exact->make), spec.overhead_limit};
      }
    return best;
  }

  /// The plan that takes the least time.
  /// @param compares  whether other policies are compared
  Best find(const Trace& trace, const RunSpec& spec, bool compares) {
    const std::vector<DeadContent> dead = dead_content(trace, spec);
    const auto on_demand = [this, drops = drops_of(dead)] { return follow_draft({drops, {}, false}, room_maker()); };
    Rivals rivals{trace, spec, "tide", swaps_, recomputes_};
    const bool exceeds = trace.ideal_peak() > spec.capacity;
    least_slower_ = exceeds ? rivals.least_slower() : 1;
    Best best{judge(trace, limited(spec), on_demand()), {on_demand, spec.overhead_limit}};
    // A step whose bytes fit may still find no places: then only places are planned, or a rival answers.
    const bool finds_no_place = best.result.outcome != Outcome::kOk || best.result.totals.eviction_count > 0;
    if (!trace.ops().empty() && (exceeds || finds_no_place) && !best.loses_nothing() &&
        (best.result.outcome == Outcome::kOk || rivals.plan_exists())) {
      if (swaps_ && (exceeds || granule_of(spec.pool))) search_repeatedly(best, trace, spec, dead);
      if (swaps_ && recomputes_ && exceeds) search_with_later_frees(best, trace, spec);
      if (compares && !best.loses_nothing()) {
        if (std::optional<Rivals::Winner> winner = rivals.beat(best.result)) {
          best.others.push_back(std::move(best.answer));
          best.answer = {std::move(winner->make), winner->overhead_limit};
        }
        judged_ += rivals.judged();
      }
    }
    if (swaps_) best.offer_copies_on_demand(trace, spec);
    return best;
  }

  /// The plan that loses the least in its worst scenario, among those found for this setting and for slower links.
  Answer most_robust(const Best& best, const Trace& trace, const RunSpec& spec) {
    RunSpec slower = spec;
    slower.machine = with_slower_links(spec.machine, robust_);
    const Best careful = find(trace, slower, false);
    return tidepool::most_robust(best, careful, trace, spec, robust_, seed_, judged_);
  }

  static bool may(const Options& options, std::string_view what) {
    return options.word("with").find(what) != std::string::npos;
  }

  OnDemand room_maker() const {
    return swaps_ && recomputes_ ? OnDemand::kCopyOrDrop : swaps_ ? OnDemand::kCopy : OnDemand::kDrop;
  }

  /// The run with a limit of overhead: a plan that exceeds the limit is not simulated to its end.
  RunSpec limited(RunSpec spec) const {
    const double thrashing = std::max(4.0, 3 * least_slower_);
    spec.overhead_limit = std::min(spec.overhead_limit.value_or(thrashing), thrashing);
    return spec;
  }

  /// Whether the pool's own places are nearly as good as counted bytes, so that planned places can hardly gain.
  static bool is_close(const Result& placed, const Result& counted) {
    return placed.outcome == Outcome::kOk &&
           placed.totals.makespan - counted.totals.makespan <= counted.totals.makespan / 5'000;
  }

  std::int64_t wanted_tries() const { return fold_ ? 2 * effort_ : effort_; }
  /// Whether these tries are enough: as many as `effort` wants, or as the default effort wants if that is fewer.
  bool are_enough(std::int64_t tries) const {
    return tries >= std::min(wanted_tries(), (fold_ ? 2 : 1) * kUsualEffort);
  }

  /// The number of tries that a search has time for at this number of ops.
  std::int64_t most_tries(const Trace& trace, const RunSpec& spec) const {
    const auto planned = static_cast<std::int64_t>(trace.ops().size() + 1),
               simulated = planned * likely_iterations(spec);
    return recomputes_ ? kMostOps / simulated : std::min(kMostOpsOfCopies / simulated, kMostOpsSelected / planned);
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

  bool is_small_enough_to_repeat(const Trace& trace, const RunSpec& spec) const {
    return are_enough(most_tries(trace, spec) / 2);
  }

  /// Searches, and repeats the search in ways that gain only sometimes if the step is small enough for many plans.
  void search_repeatedly(Best& best, const Trace& trace, const RunSpec& spec, const std::vector<DeadContent>& dead) {
    constexpr double kMuch = 1.5;
    search(best, trace, spec, SlotBegins::kBeforeFrees, dead);
    const auto once_more = [&](SlotBegins begins, const std::vector<DeadContent>& dropped, double slower = 1) {
      if (!best.loses_nothing()) search(best, trace, spec, begins, dropped, slower);
    };
    if (!is_small_enough_to_repeat(trace, spec)) return;
    if (const double slower = best.slower(); recomputes_ && slower > kMuch)
      for (const double each : {std::sqrt(slower), slower}) once_more(SlotBegins::kBeforeFrees, dead, each);
    once_more(SlotBegins::kAfterFrees, dead);
    if (!dead.empty()) {
      once_more(SlotBegins::kBeforeFrees, {});
      once_more(SlotBegins::kAfterFrees, {});
    }
    if (recomputes_ && has_one_clock(trace, spec)) search_by_clock(best, trace, spec, dead);
  }

  /// Searches again with copies planned for the times of the ops in the best plan so far, until two searches in a row
  /// gain nothing.
  void search_by_clock(Best& best, const Trace& trace, const RunSpec& spec, const std::vector<DeadContent>& dead) {
    constexpr int kMostRounds = 4;
    constexpr double kLittle = 1.02;
    int rounds_without_gain = 0;
    for (int round = 0; round < kMostRounds && rounds_without_gain < 2 && best.slower() > kLittle; ++round) {
      const Result run = judge(trace, spec, best.answer.make(), true);
      ++judged_;
      const std::vector<Nanos> clock = clock_of_plan(trace, spec, run.realised);
      search(best, trace, spec, round % 2 == 0 ? SlotBegins::kBeforeFrees : SlotBegins::kAfterFrees, dead, 1, &clock);
      rounds_without_gain = better(best.result, run) ? 0 : rounds_without_gain + 1;
    }
  }

  /// Searches a step in which small inputs of large content stay longer, if the step is small enough for many plans.
  void search_with_later_frees(Best& best, const Trace& trace, const RunSpec& spec) {
    const bool whole_plans = spec.policy.policies.size() <= 1 && (spec.steady || spec.iterations == 1);
    if (best.loses_nothing() || !spec.assume.name.empty() || !whole_plans || !is_small_enough_to_repeat(trace, spec))
      return;
    const std::optional<Trace> later = with_later_frees(trace, (trace.ideal_peak() - spec.capacity) / 10);
    if (!later) return;
    const auto on_demand = [this] { return follow_draft({}, room_maker()); };
    Best other{judge(*later, limited(spec), on_demand()), {on_demand, spec.overhead_limit}};
    search(other, *later, spec, SlotBegins::kBeforeFrees, {});
    if (!better(other.result, best.result)) return;
    search(other, *later, spec, SlotBegins::kAfterFrees, {});
    RunSpec setting = spec;
    setting.overhead_limit = other.answer.overhead_limit;
    Result run = judge(*later, setting, other.answer.make(), true);
    ++judged_;
    if (run.outcome != Outcome::kOk) return;
    ExactAnswer answer = answer_of_plan(trace, spec, repeated_as_asked(trace, spec, std::move(run.realised)), true);
    best.offer(answer.result, {std::move(answer.make), spec.overhead_limit});
  }

  /// @param slower  plans copies as if each op took this many times as long
  /// @param clock   plans copies for these start times of the ops instead, if given
  void search(Best& best, const Trace& trace, const RunSpec& spec, SlotBegins begins,
              const std::vector<DeadContent>& dead, double slower = 1, const std::vector<Nanos>* clock = nullptr) {
    StepCircle circle = step_circle(trace, begins, dead);
    const int rounds = rounds_of(trace, spec);
    if (rounds > 1) slower = std::max(slower, least_slower_);
    for (Nanos& start : circle.start) start = Nanos{std::llround(slower * static_cast<double>(start.count()))};
    if (clock != nullptr) circle.start = *clock;
    const std::vector<Action> drops = drops_of(dead);
    const std::vector<Gap> gaps = find_gaps_of_run(trace, least_, circle, spec);
    const Reruns reruns{trace, gaps};
    const std::vector<Nanos> costs =
        recomputes_ ? reruns.costs() : std::vector<Nanos>(gaps.size(), Reruns::kImpossible);
    const Machine machine = with_busy_links(spec.machine);
    Planning planning{trace, circle, gaps, reruns, machine, spec.capacity, recomputes_};
    const std::int64_t tries = std::min(wanted_tries(), std::max<std::int64_t>(most_tries(trace, spec), 32));
    const std::optional<Bytes> granule = granule_of(spec.pool);
    if (!granule) {
      Trials trials{trace, limited(spec), tries, room_maker(), kept(), drops};
      if (rounds > 1)
        find_by_clock(trials, planning, costs, circle, rounds);
      else
        find_plan(trials, planning, costs, !recomputes_);
      offer_draft(best, trials.best_result(), trials.best_draft(), spec);
      keep_others(best, trials, spec);
      judged_ += trials.judged();
      return;
    }
    RunSpec counted = limited(spec);
    counted.pool = "ideal";
    counted.capacity = *granule * (spec.capacity / *granule);
    Placer placer{trace, spec, room_maker(), *granule, packing_effort_};
    const bool thorough = are_enough(tries);
    LimitSearch limits{counted.capacity, spec.capacity / 500};
    GapPlan plan;
    std::optional<PlacedStart> start;
    std::optional<Result> to_beat, least;  // by counted bytes: of the best placed plan, and of `start` with its excess
    for (int i = 0; i < kLimits && !limits.done(); ++i) {
      const bool anew = i == 0 || (thorough && i <= 3);
      const std::int64_t share = i > 0 ? (anew ? 20 : 6) : recomputes_ ? 70 : 50;
      planning.capacity = counted.capacity = limits.limit();
      Trials trials{trace, counted, std::max<std::int64_t>(tries * share / 100, 1), room_maker(), kept(), drops};
      if (i > 0 && anew) trials.add(gaps, plan);
      if (i == 0 && rounds > 1) {
        find_by_clock(trials, planning, costs, circle, rounds);
      } else if (anew) {
        find_plan(trials, planning, costs, false, rounds > 1 ? 1 : 0);
      } else {
        if (rounds > 1) try_fluid_drops(trials, planning, costs, plan.dropped, 1);
        try_with_less(trials, planning, costs, plan);
        improve(trials, planning, costs, GapPlan{trials.best_plan()}, seed_);
      }
      judged_ += trials.judged();
      plan = trials.best_plan();
      const GapDraft& draft = trials.best_draft();
      offer_draft(best, judge(trace, spec, follow_draft(draft, room_maker())), draft, spec);
      keep_others(best, trials, spec);
      if (i == 0 && !recomputes_ && !best.loses_nothing()) plan_in_pool(best, planning, spec, plan, drops, tries / 5);
      if (!better(trials.best_result(), to_beat.value_or(best.result)) || is_close(best.result, trials.best_result())) {
        limits.is_low();
        continue;
      }
      const Placement found = find_placement(placer, spec, draft, counted.capacity);
      if (found.placed) {
        offer_placed(best, *found.placed, spec);
        to_beat = trials.best_result();
        limits.is_low();
      } else {
        limits.is_high(found.height - spec.capacity);
      }
      const Result result = with_excess(found.counted, found.height, spec);
      if (!least || better(result, *least)) {
        least = result;
        start = PlacedStart{plan, counted.capacity, tries * (i == 0 && found.placed ? 3 : 5) / 10, seed_, drops};
      }
    }
    if (start && thorough && !best.loses_nothing()) {
      planning.capacity = spec.capacity;
      if (const auto placed = improve_placed(placer, spec, planning, costs, *start, best.result))
        offer_placed(best, *placed, spec);
    }
    judged_ += placer.judged();
  }

  static void offer_placed(Best& best, const Placer::Placed& placed, const RunSpec& spec) {
    best.offer(placed.result, {[draft = placed.draft] { return draft.answer(); }, spec.overhead_limit});
  }
  Answer answer_of(const GapDraft& draft, const RunSpec& spec) const {
    return {[draft, on_demand = room_maker()] { return follow_draft(draft, on_demand); }, spec.overhead_limit};
  }
  void offer_draft(Best& best, const Result& result, const GapDraft& draft, const RunSpec& spec) const {
    best.offer(result, answer_of(draft, spec));
  }
  std::size_t kept() const { return robust_ > 0 ? kFew : 0; }
  void keep_others(Best& best, const Trials& trials, const RunSpec& spec) const {
    for (const Judged& one : trials.kept()) best.others.push_back(answer_of(one.draft, spec));
  }

  /// @param gives_up  whether to remove copies that are not needed: only if plans need no places
  /// @param programs  the most linear programs of try_fluid_drops()
  void find_plan(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, bool gives_up = false,
                 int programs = 0) const {
    Bytes largest;
    for (const Gap& gap : planning.gaps) largest = std::max(largest, gap.size);
    if (fold_) try_tied(trials, planning, costs, trials.left() / (recomputes_ ? 2 : 4));
    if (programs > 0) try_fluid_drops(trials, planning, costs, std::vector{trials.best_plan().dropped}, programs);
    if (recomputes_)
      try_mixed(trials, planning, costs, largest);
    else
      try_copies(trials, planning, largest);
    improve_best(trials, planning, costs, gives_up);
  }

  /// The number of rounds in which a search plans copies for the times of the best plan so far. More than one for steps
  /// that are searched once, if a bound says that every plan loses much time.
  int rounds_of(const Trace& trace, const RunSpec& spec) const {
    constexpr double kMuch = 1.1;
    const bool many =
        recomputes_ && least_slower_ > kMuch && has_one_clock(trace, spec) && !is_small_enough_to_repeat(trace, spec);
    return many ? 3 : 1;
  }

  /// Whether a plan gives each op of the step one start time (see clock_of_plan).
  static bool has_one_clock(const Trace& trace, const RunSpec& spec) {
    return trace.data().streams.size() == 1 && (spec.steady || spec.iterations == 1);
  }

  /// Searches in rounds with equal numbers of tries. Each round after the first plans for the op times of the best plan
  /// so far, which waits in some parts of the step and not in others.
  /// @param circle  the circle that `planning` refers to; its start times become those of the best plan
  void find_by_clock(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, StepCircle& circle,
                     int rounds) {
    const std::int64_t tries = trials.left() / rounds;
    for (int round = 0; round < rounds && !trials.over(); ++round) {
      if (round > 0 && trials.best_result().outcome != Outcome::kOk) return find_plan(trials, planning, costs);
      if (round > 0)
        circle.start = clock_of_plan(planning.trace, trials.spec(), trials.realise(trials.best_draft()).realised);
      Trials some = trials.part(tries);
      if (round > 0) some.add(planning.gaps, trials.best_plan());
      find_plan(some, planning, costs, false, round == 0 ? kPrograms : 0);
      trials.take(some);
    }
  }

  /// Plans copies for several limits below the capacity, since the pool's own places take more than the sum of bytes.
  void plan_in_pool(Best& best, Planning planning, const RunSpec& spec, const GapPlan& plan,
                    const std::vector<Action>& drops, std::int64_t tries) {
    Trials trials{planning.trace, limited(spec), tries, room_maker(), kept(), drops};
    trials.add(planning.gaps, plan);
    for (const int percent : {98, 95, 92, 88}) {
      planning.capacity = spec.capacity * percent / 100;
      feed_back(trials, planning);
    }
    offer_draft(best, trials.best_result(), trials.best_draft(), spec);
    keep_others(best, trials, spec);
    judged_ += trials.judged();
  }

  /// Changes the best plan. Without recomputation, ops start at the times of the best run so far.
  void improve_best(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, bool gives_up) const {
    StepCircle circle = planning.circle;
    if (!recomputes_ && !trials.over())
      if (const Result run = trials.realise(trials.best_draft()); run.outcome == Outcome::kOk)
        circle = realised_step(planning.trace, trials.spec(), planning.circle, run.realised).circle;
    const auto& [trace, unhindered, gaps, reruns, machine, capacity, leaving_takes_room] = planning;
    const Planning realised{trace, circle, gaps, reruns, machine, capacity, leaving_takes_room};
    const GapPlan start = trials.best_plan();
    const std::int64_t runs = trials.left() / 8;
    improve(trials, realised, costs, start, seed_);
    if (gives_up && trials.best_result().outcome == Outcome::kOk) give_up_copies(trials, realised, start, runs);
  }

  std::int64_t effort_;
  double packing_effort_;  // see Placer
  Bytes least_;
  std::uint64_t seed_;
  bool swaps_, recomputes_, reorders_, fold_, exact_;
  double robust_;
  std::optional<Best> found_;  // by reorder(), for plan()
  double least_slower_ = 1;    // a lower bound of the time of any plan, in times of the run without limit
  std::int64_t judged_ = 0;
};

const RegisterPolicy kTide{
    {.name = "tide",
     .kind = PolicyKind::kHybrid,
     .summary =
         "plans what is kept, copied and recomputed, and where; judged by simulation, never worse than the others",
     .paper = "Tidepool",
     .options = {{"with", "swap+remat", "swap|remat|swap+remat|order+swap|order+remat|order+swap+remat",
                  "what it may do; with order, it also tries other orders of the ops"},
                 {"effort", "600", "number",
                  "plans to simulate, fewer where the step has more ops; from 50 on other policies as well"},
                 {"least", "64KiB", "bytes", "smaller buffers stay"},
                 {"fold", "on", "on/off", "first decide for all similar layers together, with as many more plans"},
                 exact_option(),
                 {"robust", "0", "number",
                  "take the plan that loses least if ops and links differ by up to this share, also among plans for "
                  "links slower by it; 0: the fastest plan"}},
     .make = [](const Options& options) { return std::make_unique<Tide>(options); }}};

}  // namespace
}  // namespace tidepool
