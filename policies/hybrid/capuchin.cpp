#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "policies/planning/eviction/victims.hpp"
#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/step_circle.hpp"
#include "policies/planning/remat/draft.hpp"
#include "policies/planning/remat/lineage.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"
#include "simulator/run.hpp"

namespace tidepool {
namespace {

/// The time slots of one direction of the link that are promised to copies. They do not overlap. Those that touch are
/// one, so that a search passes a busy lane in one go.
class PromisedLane {
 public:
  void promise(Nanos start, Nanos length) {
    Nanos end = start + length;
    auto next = busy_.lower_bound(start);
    if (next != busy_.begin() && std::prev(next)->second == start) {
      start = std::prev(next)->first;
      busy_.erase(std::prev(next));
    }
    if (next != busy_.end() && next->first == end) {
      end = next->second;
      busy_.erase(next);
    }
    busy_.emplace(start, end);
  }

  /// The earliest start, at `from` or later, of a copy that takes `length`.
  Nanos earliest(Nanos from, Nanos length) const {
    auto each = busy_.upper_bound(from);
    if (each != busy_.begin() && std::prev(each)->second > from) --each;
    for (; each != busy_.end() && each->first < from + length; ++each) from = each->second;
    return from;
  }
  /// The latest start of a copy that takes `length` and ends by `until`.
  Nanos latest(Nanos until, Nanos length) const {
    auto each = busy_.lower_bound(until);
    while (each != busy_.begin() && std::prev(each)->second > until - length) until = (--each)->first;
    return until - length;
  }

 private:
  std::map<Nanos, Nanos> busy_;  // begin and end of each slot
};

/// Capuchin. The first iteration is measured in passive mode: on a shortage, the buffer that was used longest ago is
/// swapped out, and comes back when it is read. The following iterations are guided by this measurement. The peak
/// period is the time in which the live bytes exceed the capacity; candidates are tensors with an idle interval that
/// overlaps this period. For a tensor that is evicted after one access and comes back for the next (back) access:
///   SwapOutEnd  = end of the evicted access + copy time        SwapInStart = start of the back access - copy time
///   FT          = SwapInStart - SwapOutEnd
///   MSPS        = bytes saved / recomputation time, by lineage
/// In the order of descending FT, tensors are swapped if copies in both directions can be hidden: the latest
/// SwapInStart that the lane allows must be after the peak period, and not before the earliest SwapOutEnd. If these
/// tensors have fewer bytes than passive mode evicted at most at the same time, the remaining candidates follow in the
/// same order. Each is swapped or recomputed, whichever costs less: the time of copies that is not hidden, or
/// bytes / MSPS.
/// Each new tensor to recompute changes the MSPS of the others: tensors that are recomputed from it take longer, and a
/// candidate also pays for recomputed tensors that depend on it (algorithm 2). A swapped tensor comes back at its
/// in-trigger, the last op that starts by SwapInStart and after the peak period; a recomputed tensor comes back when it
/// is read. If a tensor is still absent or on its way at its back access, its in-trigger moves earlier by `lead` of its
/// copy time for the next iteration.
///
/// On a remaining shortage, passive mode continues. A run of one iteration is guided by a simulated passive iteration
/// before it. Access times are those of a run without waits.
///
/// Paper: Peng et al., "Capuchin: Tensor-based GPU Memory Management for Deep Learning", ASPLOS 2020, sections 4.2 to
/// 4.5, known from its abstract and other descriptions. According to these, its passive mode first looks for a tensor
/// of about the needed size; Tidepool's does not. Here each direction of the link copies independently, and tensors
/// below `least` stay.
///
/// Cost: O(candidates^2 * lineage).
class Capuchin final : public SwapOutLeast<OldestFirst> {
 public:
  explicit Capuchin(const Options& options)
      : lead_{number_of("capuchin", options, "lead", 1'000)}, least_{options.bytes("least")} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    if (trace.ops().empty() || trace.ideal_peak() <= spec.capacity) return {};
    passive_ = spec.iterations > 1 ? 1 : 0;
    circle_ = step_circle(trace);
    const auto over = [&](Bytes load) { return load > spec.capacity; };
    const auto first = std::find_if(circle_.load.begin(), circle_.load.end(), over);
    const auto last = std::find_if(circle_.load.rbegin(), circle_.load.rend(), over);
    if (first == circle_.load.end()) return {};
    peak_begin_ = static_cast<std::uint32_t>(first - circle_.load.begin());
    peak_end_ = static_cast<std::uint32_t>(circle_.load.rend() - last);
    choose(trace, spec, most_evicted(trace, passive_iteration(trace, spec)));
    return {};
  }

  void start(const View& view) override {
    SwapOutLeast<OldestFirst>::start(view);
    guided_ = passive_-- <= 0;
    passive_ = std::max(passive_, 0);
    awaited_.clear();
    next_back_ = next_trigger_ = 0;
    on_their_way_.clear();
    asked_ = OpId{0};
    evictions_.start();
    by_trigger_ = swapped_;
    for (Swapped& each : by_trigger_) each.trigger = trigger_of(each);
    std::stable_sort(by_trigger_.begin(), by_trigger_.end(),
                     [](const Swapped& a, const Swapped& b) { return a.trigger < b.trigger; });
  }

  std::int64_t changes_of_mind() const override { return (guided_ ? 1 : 0) + moved_; }

  void before_run(const View& view, OpId op, std::vector<Action>& out) override {
    if (!guided_) return;
    evictions_.due(view, op, out);
    note_late(view, op);
    for (; next_trigger_ < by_trigger_.size() && by_trigger_[next_trigger_].trigger <= op.value(); ++next_trigger_)
      awaited_.push_back(by_trigger_[next_trigger_].version);
    std::erase_if(awaited_, [&](VersionId v) { return !view.state(v).wanted || view.evictable(v); });
    for (const VersionId v : awaited_) out.push_back({.verb = Verb::kSwapIn, .before = op, .subject = v.value()});
  }
  bool follows_plan() const override { return true; }

 private:
  struct Swapped {
    VersionId version;
    std::uint32_t release, due;  // ops
    Nanos start;                 // SwapInStart
    Nanos time;                  // of the swap-in
    Nanos lead = {};
    std::uint32_t trigger = 0;  // op
  };
  /// The copies of an idle interval, in the time of the lanes that is not promised yet.
  struct Copying {
    Nanos out, in;  // start times
    Nanos exposed;  // time of both copies that is not hidden
  };

  /// Moves in-triggers earlier for the next iteration, for tensors that came late for the previous op or are absent at
  /// this op.
  void note_late(const View& view, OpId op) {
    const Trace& trace = view.trace();
    if (op.value() == asked_.value() + 1 && trace.op(op).stream == trace.op(asked_).stream &&
        view.now() - asked_at_ > trace.op(asked_).duration)
      for (Swapped* each : on_their_way_) come_earlier(*each);
    on_their_way_.clear();
    asked_ = op;
    asked_at_ = view.now();
    for (; next_back_ < swapped_.size() && swapped_[next_back_].due <= op.value(); ++next_back_) {
      Swapped& back = swapped_[next_back_];
      const VersionState& state = view.state(back.version);
      if (back.due != op.value()) continue;
      if (!state.filled)
        come_earlier(back);
      else if (state.from_host && state.ready + back.time > asked_at_)  // the copy may have been slowed down
        on_their_way_.push_back(&back);
    }
  }

  void come_earlier(Swapped& late) {
    const Nanos by = scaled(late.time, lead_);
    if (by > Nanos{} && trigger_of(late) > earliest_trigger(late)) ++moved_;
    late.lead += by;
  }

  static Nanos scaled(Nanos time, double factor) {
    return Nanos{static_cast<std::int64_t>(static_cast<double>(time.count()) * factor)};
  }

  Plan passive_iteration(const Trace& trace, const RunSpec& spec) const {
    RunSpec one = spec;
    one.iterations = 1;
    one.steady = false;
    if (find_pool(spec.pool.name).plan) one.pool = "best-fit";  // a planner would plan for this iteration alone
    std::vector<std::unique_ptr<Policy>> policies;
    policies.push_back(std::make_unique<SwapOutLeast<OldestFirst>>());
    return simulate_under(trace, one, std::move(policies), true, true).realised;
  }

  /// The most bytes that were evicted at the same time.
  static Bytes most_evicted(const Trace& trace, const Plan& plan) {
    std::vector<bool> away(trace.versions().size());
    Bytes sum, most;
    for (const Action& action : plan.actions) {
      const bool leaves = action.verb == Verb::kDrop;
      if (!leaves && action.verb != Verb::kSwapIn && action.verb != Verb::kFree) continue;
      if (away[action.subject] == leaves) continue;
      away[action.subject] = leaves;
      const Bytes size = trace.size(VersionId{action.subject});
      sum += leaves ? size : -size;
      most = std::max(most, sum);
    }
    return most;
  }

  /// The longest idle interval of each version that overlaps the peak period, by descending FT.
  std::vector<Gap> candidates(const Trace& trace, const RunSpec& spec) const {
    std::vector<Gap> found = find_gaps(trace, least_, spec.assume);
    std::erase_if(
        found, [&](const Gap& gap) { return gap.crosses || gap.release + 1 >= peak_end_ || gap.due <= peak_begin_; });
    std::stable_sort(found.begin(), found.end(), [&](const Gap& a, const Gap& b) {
      return spare_time(circle_, a, spec.machine) > spare_time(circle_, b, spec.machine);
    });
    std::set<VersionId> seen;
    std::erase_if(found, [&](const Gap& gap) { return !seen.insert(gap.out).second; });
    return found;
  }

  Copying copies_of(const Gap& gap, const Machine& machine) const {
    const Nanos out_time = machine.d2h.time(gap.size), in_time = machine.h2d.time(gap.size);
    Copying copying;
    copying.out = out_.earliest(released(circle_, gap), out_time);
    copying.in = in_.latest(circle_.at(gap.due), in_time);
    const Nanos possible = std::max(copying.out + out_time, circle_.at(std::min(peak_end_, gap.due)));
    copying.exposed = std::clamp(possible - copying.in, Nanos{}, out_time + in_time);
    return copying;
  }

  void choose(const Trace& trace, const RunSpec& spec, Bytes saving) {
    const std::vector<Gap> ranked = candidates(trace, spec);
    std::vector<Action> evictions;
    std::vector<bool> chosen(ranked.size());
    const auto take = [&](std::size_t i, Verb verb) {
      chosen[i] = true;
      saving -= ranked[i].size;
      evictions.push_back({verb, OpId{ranked[i].release + std::size_t{1}}, ranked[i].out.value(), {}, {}});
    };
    const auto swap = [&](std::size_t i, const Copying& copying) {
      const Gap& gap = ranked[i];
      out_.promise(copying.out, spec.machine.d2h.time(gap.size));
      in_.promise(copying.in, spec.machine.h2d.time(gap.size));
      swapped_.push_back({gap.out, gap.release, gap.due, copying.in, spec.machine.h2d.time(gap.size)});
      take(i, Verb::kSwapOut);
    };
    for (std::size_t i = 0; i < ranked.size() && saving > Bytes{}; ++i)
      if (const Copying copying = copies_of(ranked[i], spec.machine); copying.exposed == Nanos{}) swap(i, copying);

    Lineage lineage{trace};
    std::vector<const Gap*> recomputed;
    for (std::size_t i = 0; i < ranked.size() && saving > Bytes{}; ++i) {
      if (chosen[i]) continue;
      const Copying copying = copies_of(ranked[i], spec.machine);
      const std::optional<Nanos> again = recomputation(lineage, recomputed, ranked[i]);
      if (!again || copying.exposed <= *again) {
        swap(i, copying);
        continue;
      }
      lineage.drop(ranked[i].out, ranked[i].release, ranked[i].due);
      recomputed.push_back(&ranked[i]);
      take(i, Verb::kDrop);
    }
    std::stable_sort(evictions.begin(), evictions.end(),
                     [](const Action& a, const Action& b) { return a.before < b.before; });
    evictions_ = Draft{std::move(evictions)};
    std::stable_sort(swapped_.begin(), swapped_.end(),
                     [](const Swapped& a, const Swapped& b) { return a.due < b.due; });
  }

  /// The increase of the recomputation time of all `others` and this gap if its version is recomputed too; none if that
  /// is impossible.
  static std::optional<Nanos> recomputation(Lineage& lineage, const std::vector<const Gap*>& others, const Gap& gap) {
    const std::optional<Nanos> own = lineage.time(gap.out, gap.due);
    if (!own) return std::nullopt;
    Nanos sum = *own;
    for (const Gap* other : others) sum -= lineage.time(other->out, other->due).value_or(Nanos{});
    lineage.drop(gap.out, gap.release, gap.due);
    bool possible = true;
    for (const Gap* other : others) {
      const std::optional<Nanos> time = lineage.time(other->out, other->due);
      possible &= time.has_value();
      sum += time.value_or(Nanos{});
    }
    lineage.keep(gap.out);
    return possible ? std::optional{sum} : std::nullopt;
  }

  std::uint32_t trigger_of(const Swapped& swapped) const {
    const auto next = std::upper_bound(circle_.start.begin(), circle_.start.end() - 1, swapped.start - swapped.lead);
    const auto op = next == circle_.start.begin() ? 0 : static_cast<std::uint32_t>(next - circle_.start.begin()) - 1;
    return std::max(std::min(op, swapped.due), earliest_trigger(swapped));
  }
  std::uint32_t earliest_trigger(const Swapped& swapped) const {
    return std::min(std::max(peak_end_, swapped.release + 2), swapped.due);
  }

  double lead_;
  Bytes least_;
  int passive_ = 0;  // remaining iterations in passive mode
  bool guided_ = false;
  std::int64_t moved_ = 0;  // number of requests to move an in-trigger that could still move
  StepCircle circle_;
  std::uint32_t peak_begin_ = 0, peak_end_ = 0;  // ops [begin, end)
  PromisedLane out_, in_;
  Draft evictions_;
  std::vector<Swapped> swapped_, by_trigger_;  // by due op; by trigger
  std::size_t next_back_ = 0, next_trigger_ = 0;
  std::vector<VersionId> awaited_;
  OpId asked_;                          // the previous op
  Nanos asked_at_;                      // time at which that op's stream was free
  std::vector<Swapped*> on_their_way_;  // inputs of the previous op that may have arrived late
};

const RegisterPolicy kCapuchin{
    {.name = "capuchin",
     .kind = PolicyKind::kHybrid,
     .summary = "after a measured iteration, swaps tensors whose copies can be hidden, then swaps or recomputes "
                "others, whichever costs less",
     .paper = "Capuchin: Peng et al., ASPLOS 2020, sections 4.2 to 4.5",
     .options = {{"lead", "0.05", "number", "share of a copy's time by which it begins earlier after it came late"},
                 {"least", "64KiB", "bytes", "smaller buffers stay"}},
     .make = [](const Options& options) { return std::make_unique<Capuchin>(options); }}};

}  // namespace
}  // namespace tidepool
