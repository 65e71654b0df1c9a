// Trials: runs of draft plans, the best of which is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "policies/planning/gaps/gap_draft.hpp"
#include "policies/planning/gaps/selection.hpp"
#include "policies/planning/gaps/step_circle.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Judges drafts of copies and keeps the best. The first draft has no actions: shortages are answered by copies on
/// demand, as in every draft.
class Trials {
 public:
  /// @param tries  the number of drafts that may still be judged
  Trials(const Trace& trace, const RunSpec& spec, std::int64_t tries);

  /// Judges the copies. A draft equal to the previous one is not run again, and is no further try. The result is valid
  /// until the next call.
  const Result& add(const std::vector<Gap>& gaps, const std::vector<PlannedGap>& copied);
  /// Whether no tries are left, or the best draft has no overhead.
  bool over() const;
  /// Number of tries so far.
  std::int64_t judged() const { return judged_; }
  const Result& best_result() const { return best_result_; }
  const GapDraft& best_draft() const { return best_; }

 private:
  const Trace& trace_;
  const RunSpec& spec_;
  std::int64_t tries_, judged_ = 0;
  GapDraft best_, last_;
  Result best_result_, last_result_;
};

/// Selects and schedules in turns: the limits of a selection are lowered by the bytes under way of the previous one.
/// Ends when the limits repeat or a selection no longer fits, after `rounds`, or when the trials are over.
/// @param slack   bytes of the capacity that selections leave free
/// @param select  picks gaps for limits
void try_rounds(Trials& trials, const StepCircle& circle, const std::vector<Gap>& gaps, const RunSpec& spec,
                Bytes slack, int rounds, const std::function<Selection(const SlotLimits&)>& select);

}  // namespace tidepool
