// Two plans of one step: which tensors each of them keeps, swaps or recomputes.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/plan.hpp"
#include "simulator/plan_file.hpp"
#include "traces/base/quantity.hpp"
#include "traces/names.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// What a plan does with a tensor between its first and its last use.
enum class Fate : std::uint8_t {
  kKept,
  kSwapped,     ///< it goes to the host, and comes back
  kRecomputed,  ///< it is dropped, and made again
  kBoth,        ///< the one and the other, at different times
};

template <>
std::span<const std::string_view> words<Fate>();

/// A tensor with which the plans do different things.
struct FateDifference {
  std::uint32_t version = 0;
  Bytes bytes;
  Fate a = Fate::kKept, b = Fate::kKept;
};

/// The tensors that change from one fate to another.
struct FateGroup {
  Fate a = Fate::kKept, b = Fate::kKept;
  std::int64_t tensors = 0;
  Bytes bytes;
};

/// The first place at which plans decide differently. A decision is a drop, a copy, a wait for copies, or a rerun; a
/// plan without a decision here has no more of them in the iteration.
struct FirstDecision {
  int iteration = 1;
  std::optional<Action> a, b;  ///< at least one
};

struct PlanDiff {
  std::vector<FateDifference> tensors;  ///< largest first
  std::vector<FateGroup> groups;        ///< most bytes first
  std::optional<FirstDecision> first;   ///< none if the plans differ in places or order only
  bool same_actions = false;            ///< the plans are equal, places and order included
};

/// Compares what happens in the last cycle of two plans, and finds the first decision that differs. Without tensors and
/// decision if they run the ops in different orders.
/// @param step  PlannedStep::trace() of the first one
PlanDiff diff_plans(const Plan& a, const Plan& b, const Trace& step);

/// Two plan files with the names under which messages have them, and what differs.
struct ComparedPlans {
  std::string name_a, name_b;
  PlanFile a, b;
  Trace trace;  ///< as recorded
  PlanDiff diff;
};

/// Loads two plans and compares them.
/// @param trace  the path of the trace that they are for
/// @throws InputError  "a.plan and b.plan are plans; expected --trace with the trace that they are for"
ComparedPlans compare_plans(const std::string& path_a, const std::string& path_b, const std::string& trace);

/// The answer in one sentence.
std::string first_line(const ComparedPlans& found);
/// "buffer 632 (blocks.0.mlp.fc1, model.py:88)".
std::string tensor_name(const ComparedPlans& found, const FateDifference& tensor);
/// "first decision that differs: before op 12 (aten::linear), a.plan drops buffer 5 and b.plan copies it to the host".
std::string first_decision_text(const ComparedPlans& found);
/// What `diff --json` prints.
nlohmann::ordered_json to_json(const ComparedPlans& found);

}  // namespace tidepool
