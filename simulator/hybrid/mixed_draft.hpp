// Plans made before the run that both swap and drop.
#pragma once

#include <utility>
#include <vector>

#include "simulator/furthest_use.hpp"
#include "simulator/plan.hpp"
#include "simulator/remat/draft.hpp"
#include "simulator/run.hpp"
#include "simulator/swap/gap.hpp"
#include "simulator/swap/schedule.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// What to do in which gaps. Gaps that are named nowhere are not used.
struct MixedPlan {
  std::vector<PlannedGap> swapped;
  std::vector<std::uint32_t> dropped;  ///< what they hold is recomputed when it is read again; none crosses
  bool operator==(const MixedPlan&) const = default;
};

/// What hybrid planners have in common. The driver carries out the swaps; what is dropped is decided when it is due,
/// since content that could not be recomputed any more stays. Where the plan is not enough, what is read again last is
/// copied to the host on demand.
class MixedDraftPolicy : public SwapOutLeast<FurthestFirst> {
 public:
  void start(const View& view) override {
    drops_.start();
    SwapOutLeast<FurthestFirst>::start(view);
  }
  void before_run(const View& view, OpId op, std::vector<Action>& out) override { drops_.due(view, op, out); }

 protected:
  /// Keeps the drops of a plan. @return its swaps, for the driver
  std::vector<Action> adopt(const Trace& trace, const std::vector<Gap>& gaps, const MixedPlan& plan);

 private:
  Draft drops_;
};

/// Runs a plan in the setting of `spec`, as judge() of a policy that follows it does.
/// @param keep_plan  whether Result::realised is wanted
Result judge(const Trace& trace, const RunSpec& spec, const std::vector<Gap>& gaps, const MixedPlan& plan,
             bool keep_plan);

/// Gaps in which an activation waits between the forward and the backward phase, each version once: what it is read
/// for next lies behind the first backward op. Parameters and what else exists before and after the step is not among
/// them. In the order in which they are due.
/// @param gaps  of the trace
std::vector<std::uint32_t> feature_maps(const Trace& trace, const std::vector<Gap>& gaps);

}  // namespace tidepool
