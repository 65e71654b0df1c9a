// Trials: runs of draft plans, the best of which is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/schedule.hpp"
#include "policies/planning/gaps/selection.hpp"
#include "policies/planning/gaps/step_circle.hpp"
#include "simulator/policy.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The gaps of a plan: those that are swapped, and those that are dropped at their release and recomputed at their due
/// op.
struct GapPlan {
  std::vector<PlannedGap> copied;
  std::vector<std::uint32_t> dropped;
  bool drops_on_demand = false;  ///< on a shortage, only drops are allowed, at most kMostDrops times
  bool operator==(const GapPlan&) const = default;
};

/// A GapPlan as sorted actions.
struct GapDraft {
  std::vector<Action> copies, drops;
  bool drops_on_demand = false;
  bool operator==(const GapDraft&) const = default;
};
/// @param always  further copies and drops, sorted; at the same op they come first
GapDraft draft_of(const std::vector<Gap>& gaps, const GapPlan& plan, std::size_t ops,
                  const std::vector<Action>& always = {});

/// The answer to a shortage that a plan leaves: swap out the version with the latest next read; drop the version with
/// the least cost per time until its next read (see DropByNextUse); the cheaper of both; or none.
enum class OnDemand : std::uint8_t { kCopy, kDrop, kCopyOrDrop, kNothing };

/// The most drops on demand in an iteration. Each drop may visit all evicted versions: a plan that needs many is not
/// worth a full trial.
inline constexpr std::int64_t kMostDrops = 300;

/// A policy that executes `draft`.
/// @param on_demand  the answer to a shortage, unless the draft has its own
std::unique_ptr<Policy> follow_draft(GapDraft draft, OnDemand on_demand);

/// Runs the trace under `policy` with the settings of `spec` (its policy is ignored), exactly as the final run will.
/// @param keep_plan   whether to keep Result::realised
/// @param matters_to  see simulate_under()
Result judge(const Trace& trace, const RunSpec& spec, std::unique_ptr<Policy> policy, bool keep_plan = false,
             std::optional<Nanos> matters_to = {});

/// The RunSpec::overhead_limit for runs that matter only if their overhead is less than `factor` times that of `best`.
/// It is that of `spec` if `best` did not end well, or if only the end of a run shows its time.
std::optional<double> limit_of(const Trace& trace, const RunSpec& spec, const Result& best, double factor);

/// A lower bound of the rerun time if all of these gaps are dropped: each producer of their content, once.
Nanos least_rerun(const Trace& trace, const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& dropped);

/// The order in which planners prefer runs: first those that end well; of the others, those that ran more of the
/// program; then those with less time; then those with fewer copied bytes.
bool better(const Result& a, const Result& b);

/// A draft and the cost of its run.
struct Judged {
  Result result;
  GapDraft draft;
};

/// Judges drafts and keeps the best. The first draft has only the actions `always`: shortages are answered on demand.
class Trials {
 public:
  /// @param tries   the number of drafts that may still be judged
  /// @param keep    the most drafts that kept() may have; if not 0, slow drafts are run to their end too
  /// @param always  actions of every draft, see draft_of()
  Trials(const Trace& trace, const RunSpec& spec, std::int64_t tries, OnDemand on_demand, std::size_t keep = 0,
         std::vector<Action> always = {});

  /// Judges the plan. A plan equal to the previous one is not run again, and is no further try. A plan that must lose
  /// by its drops (see must_lose()) is not run either, but is a try: it gets the result of a run at the time limit. The
  /// result is valid until the next call.
  const Result& add(const std::vector<Gap>& gaps, const GapPlan& plan);
  /// Whether a plan that drops these gaps can hardly be better than the best, since its reruns take too long. May be
  /// wrong if the host has a copy of a dropped version from an earlier gap.
  bool must_lose(const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& dropped) const;
  /// Whether no tries are left, or the best draft has no overhead.
  bool over() const { return tries_ <= 0 || free(); }
  std::int64_t left() const { return tries_; }
  /// Whether the best draft has no overhead.
  bool free() const;
  /// Number of tries and of calls of realise() so far.
  std::int64_t judged() const { return judged_; }
  const Result& best_result() const { return best_result_; }
  const GapDraft& best_draft() const { return best_; }
  /// The draft of a plan.
  GapDraft draft(const std::vector<Gap>& gaps, const GapPlan& plan) const {
    return draft_of(gaps, plan, trace_.ops().size(), always_);
  }
  /// New trials of the same kind with `tries` tries.
  Trials part(std::int64_t tries) const { return {trace_, spec_, tries, on_demand_, keep_, always_}; }
  /// Takes over the best draft of such trials, if it is better, and their kept drafts. Each of part.judged() is a try.
  void take(const Trials& part);
  /// A run of a draft with its realised plan; does not lower left().
  Result realise(GapDraft draft);
  /// The settings of the run that judges drafts.
  const RunSpec& spec() const { return spec_; }
  const GapPlan& best_plan() const { return best_plan_; }
  /// The best drafts that end well, best first, each once; at most the number given to the constructor.
  const std::vector<Judged>& kept() const { return kept_; }

 private:
  void keep(const Result& result, const GapDraft& draft);

  const Trace& trace_;
  RunSpec spec_;
  std::int64_t tries_, judged_ = 0;
  OnDemand on_demand_;
  std::size_t keep_;
  std::vector<Action> always_;
  Nanos work_;  ///< total time of all ops
  std::vector<Judged> kept_;
  GapDraft best_, last_;
  GapPlan best_plan_;
  Result best_result_, last_result_;
};

/// Selects and schedules in turns: the limits of a selection are lowered by the bytes under way of the previous one.
/// Ends when the limits repeat or a selection no longer fits, after `rounds`, or when the trials are over.
/// @param slack   bytes of the capacity that selections leave free
/// @param select  picks gaps for limits
void try_rounds(Trials& trials, const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine,
                Bytes capacity, Bytes slack, int rounds, CopyOut copies,
                const std::function<Selection(const SlotLimits&)>& select);

}  // namespace tidepool
