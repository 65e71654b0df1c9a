// Trying drafts in the run that they are for, and keeping the best.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/run.hpp"
#include "simulator/swap/gap.hpp"
#include "simulator/swap/schedule.hpp"
#include "simulator/swap/selection.hpp"
#include "simulator/swap/step_circle.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// What is done where a draft is not enough: what is read again last is copied to the host, or nothing.
enum class Otherwise : std::uint8_t { kCopyFurthest, kOutOfMemory };

/// A policy that drafts `draft`.
std::unique_ptr<Policy> follow_draft(std::vector<Action> draft, Otherwise otherwise = Otherwise::kCopyFurthest);

/// Runs `policy` in the setting of `spec` (whose policies are not asked), exactly as the run will. A pool that plans
/// offline is stood in for by best-fit: it would plan anew for every draft.
/// @param keep_plan  whether Result::realised is wanted
Result judge(const Trace& trace, const RunSpec& spec, std::unique_ptr<Policy> policy, bool keep_plan = false);

/// What a planner prefers: a run that ends well; then less time; then fewer bytes copied.
bool better(const Result& a, const Result& b);

/// The best of the drafts judged so far, beginning with the empty one.
class Trials {
 public:
  /// @param tries  how many more drafts may be judged
  Trials(const Trace& trace, const RunSpec& spec, std::int64_t tries);

  /// Judges the plan. The one before it is not judged twice.
  const Result& add(const std::vector<Gap>& gaps, const std::vector<PlannedGap>& planned);
  /// No tries are left, or the best costs no time.
  bool over() const { return tries_ <= 0 || free(); }
  /// Whether the best costs no time.
  bool free() const;
  std::int64_t judged() const { return judged_; }
  const Result& best_result() const { return best_result_; }
  const std::vector<Action>& best() const { return best_; }
  const std::vector<PlannedGap>& best_plan() const { return best_plan_; }

 private:
  const Trace& trace_;
  RunSpec spec_;
  std::int64_t tries_, judged_ = 0;
  std::vector<Action> best_, last_;
  std::vector<PlannedGap> best_plan_;
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
