// Trying drafts in the run that they are for, and keeping the best.
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

/// What a plan does with gaps: which are on the host, and which are dropped when they are released and made again when
/// they are due.
struct GapPlan {
  std::vector<PlannedGap> copied;
  std::vector<std::uint32_t> dropped;
  bool drops_on_demand = false;  ///< where that is not enough, only dropping makes room, at most kMostDrops times
  bool operator==(const GapPlan&) const = default;
};

/// The same as actions, sorted.
struct GapDraft {
  std::vector<Action> copies, drops;
  bool drops_on_demand = false;
  bool operator==(const GapDraft&) const = default;
};
/// @param always  copies and drops, sorted, that are made besides, first of those at one op
GapDraft draft_of(const std::vector<Gap>& gaps, const GapPlan& plan, std::size_t ops,
                  const std::vector<Action>& always = {});

/// What makes room where a plan is not enough: copying what is read again last to the host; dropping what costs least
/// for the time until it is read again (see DropByNextUse); either, whichever costs less; or nothing.
enum class OnDemand : std::uint8_t { kCopy, kDrop, kCopyOrDrop, kNothing };

/// In an iteration. Each answer may walk all that is evicted: a plan that needs many is not worth being judged.
inline constexpr std::int64_t kMostDrops = 300;

/// A policy that carries `draft` out.
/// @param on_demand  what makes room where that is not enough, unless the draft says so
std::unique_ptr<Policy> follow_draft(GapDraft draft, OnDemand on_demand);

/// Runs the trace under `policy` in the setting of `spec` (whose policies are not asked), exactly as the run will.
/// @param keep_plan   whether Result::realised is wanted
/// @param matters_to  as of simulate_under()
Result judge(const Trace& trace, const RunSpec& spec, std::unique_ptr<Policy> policy, bool keep_plan = false,
             std::optional<Nanos> matters_to = {});

/// An overhead limit for runs that only matter if they lose less than `factor` times what `best` loses.
std::optional<double> limit_of(const Trace& trace, const RunSpec& spec, const Result& best, double factor);

/// What is run again at least if all of these gaps are dropped: what makes their content, once each.
Nanos least_rerun(const Trace& trace, const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& dropped);

/// What a planner prefers: a run that ends well; of those that do not, the one that did more of the program; then less
/// time; then fewer bytes copied.
bool better(const Result& a, const Result& b);

/// A draft and what its run took.
struct Judged {
  Result result;
  GapDraft draft;
};

/// The best of the drafts judged so far, beginning with the one that leaves all to what makes room on demand.
class Trials {
 public:
  /// @param tries   how many more drafts may be judged
  /// @param keep    how many drafts besides the best are wanted in the end: if any, slow ones are judged to their end
  /// @param always  what every draft does besides, see draft_of()
  Trials(const Trace& trace, const RunSpec& spec, std::int64_t tries, OnDemand on_demand, std::size_t keep = 0,
         std::vector<Action> always = {});

  /// Judges the plan. The one before it is not judged twice, and one that must lose by what it drops is not run, but
  /// ends by the time limit at once.
  const Result& add(const std::vector<Gap>& gaps, const GapPlan& plan);
  /// Whether a plan that drops these gaps can hardly be better than the best, since what is run again for them takes
  /// longer. It may be wrong where the host has a copy of what is dropped, from an absence before.
  bool must_lose(const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& dropped) const;
  /// No tries are left, or the best costs no time.
  bool over() const { return tries_ <= 0 || free(); }
  std::int64_t left() const { return tries_; }
  /// Whether the best costs no time.
  bool free() const;
  std::int64_t judged() const { return judged_; }
  const Result& best_result() const { return best_result_; }
  const GapDraft& best_draft() const { return best_; }
  /// The draft that carries a plan out.
  GapDraft draft(const std::vector<Gap>& gaps, const GapPlan& plan) const {
    return draft_of(gaps, plan, trace_.ops().size(), always_);
  }
  /// A run of a draft, not a try, with what it realised.
  Result realise(GapDraft draft);
  /// What it is judged in.
  const RunSpec& spec() const { return spec_; }
  const GapPlan& best_plan() const { return best_plan_; }
  /// The best drafts that end well, the best first, each once; at most as many as are to be kept.
  const std::vector<Judged>& kept() const { return kept_; }

 private:
  void keep(const Result& result, const GapDraft& draft);

  const Trace& trace_;
  RunSpec spec_;
  std::int64_t tries_, judged_ = 0;
  OnDemand on_demand_;
  std::size_t keep_;
  std::vector<Action> always_;
  Nanos work_;  ///< of all ops
  std::vector<Judged> kept_;
  GapDraft best_, last_;
  GapPlan best_plan_;
  Result best_result_, last_result_;
};

/// Selects and schedules in turns: what the copies of one selection hold while they are under way is taken off the
/// limits that the next one is made for. Ends when that repeats, when a selection no longer fits, after `rounds`, or
/// when the trials are over.
/// @param select  picks gaps for limits
void try_rounds(Trials& trials, const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine,
                Bytes capacity, Bytes slack, int rounds, CopyOut copies,
                const std::function<Selection(const SlotLimits&)>& select);

}  // namespace tidepool
