// Drafts: treatments of idle intervals as actions, and their runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/schedule.hpp"
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
  bool operator==(const GapPlan&) const = default;
};

/// A GapPlan as sorted actions.
struct GapDraft {
  std::vector<Action> copies, drops;
  bool operator==(const GapDraft&) const = default;
};
/// @param always  further copies and drops, sorted; at the same op they come first
GapDraft draft_of(const std::vector<Gap>& gaps, const GapPlan& plan, std::size_t ops,
                  const std::vector<Action>& always = {});

/// The answer to a shortage that a plan leaves: swap out the version with the latest next read; swap out or drop the
/// one that costs least per time until its next read (see DropByNextUse); or none.
enum class OnDemand : std::uint8_t { kCopy, kCopyOrDrop, kNothing };

/// A policy that executes `draft`.
/// @param on_demand  the answer to a shortage
std::unique_ptr<Policy> follow_draft(GapDraft draft, OnDemand on_demand);

/// Runs the trace under `policy` with the settings of `spec` (its policy is ignored), exactly as the final run will.
/// @param keep_plan   whether to keep Result::realised
/// @param matters_to  see simulate_under()
Result judge(const Trace& trace, const RunSpec& spec, std::unique_ptr<Policy> policy, bool keep_plan = false,
             std::optional<Nanos> matters_to = {});

/// The RunSpec::overhead_limit for runs that matter only if their overhead is less than `factor` times that of `best`.
/// It is that of `spec` if `best` did not end well, or if only the end of a run shows its time.
std::optional<double> limit_of(const Trace& trace, const RunSpec& spec, const Result& best, double factor);

/// The order in which planners prefer runs: first those that end well; of the others, those that ran more of the
/// program; then those with less time; then those with fewer copied bytes.
bool better(const Result& a, const Result& b);

}  // namespace tidepool
