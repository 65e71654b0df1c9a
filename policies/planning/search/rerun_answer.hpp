// A planner's answer from the best schedule of reruns, for steps in which each op writes one new buffer.
#pragma once

#include <optional>

#include "policies/planning/search/plan_answer.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A plan by search_reruns() that is faster than `found` and keeps to the rules of the run's assumptions. None if there
/// is no such plan or the search does not apply. It applies to one step, alone or repeated, on one stream and a pool
/// without addresses. Every op must write one version, none in place (writes_anew), and no op may make an output of the
/// step. The policy must be alone in its chain.
/// @param effort  1 takes up to some seconds
std::optional<PlanAnswer> rerun_answer(const Trace& trace, const RunSpec& spec, double effort, const Result& found);

}  // namespace tidepool
