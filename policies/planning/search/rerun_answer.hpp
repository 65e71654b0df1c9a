// An answer from the best schedule of runs, for steps in which each op writes one new buffer.
#pragma once

#include <optional>

#include "policies/planning/search/exact_plan.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A faster plan than `found` by search_reruns(), which keeps to the rules of the run's assumptions. Nothing: it found
/// none, or does not look for one. It looks in one step, alone or repeated, on one stream, on a pool without addresses, where ops
/// write nothing in place (writes_anew) and one version each, and the policy is alone in its chain.
/// @param effort  1: up to some seconds
std::optional<ExactAnswer> rerun_answer(const Trace& trace, const RunSpec& spec, double effort, const Result& found);

}  // namespace tidepool
