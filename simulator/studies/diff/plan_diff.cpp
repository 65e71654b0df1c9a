#include "simulator/studies/diff/plan_diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "simulator/ordered_step.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"
#include "traces/program_names.hpp"

namespace tidepool {

template <>
std::span<const std::string_view> words<Fate>() {
  static constexpr std::array<std::string_view, 4> kWords{"kept", "swapped", "recomputed", "swapped and recomputed"};
  return kWords;
}

namespace {

using Json = nlohmann::ordered_json;

struct Treatment {
  bool swapped = false, recomputed = false;
  bool dropped = false;  ///< it has not come back so far
  bool on_host = false;  ///< the host has a copy

  /// Notes how it has come back, where an action says it: what is made again in place of another version needs none.
  void settle(bool counts) {
    if (dropped && counts) (on_host ? swapped : recomputed) = true;
    dropped = false;
  }
  Fate fate() const {
    if (swapped) return recomputed ? Fate::kBoth : Fate::kSwapped;
    return recomputed ? Fate::kRecomputed : Fate::kKept;
  }
};

/// Where the actions of the last cycle begin.
std::size_t begin_of_cycle(const Plan& plan) {
  int left = plan.cycle;
  for (std::size_t i = plan.actions.size(); i-- > 0;)
    if (plan.actions[i].verb == Verb::kNext && --left == 0) return i;
  return 0;
}

/// What a plan does with each version, by version.
std::map<std::uint32_t, Treatment> treatments(const Plan& plan) {
  std::map<std::uint32_t, Treatment> found;
  const std::size_t begin = begin_of_cycle(plan);
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    const Action& action = plan.actions[i];
    const bool counts = i >= begin;
    switch (action.verb) {
      case Verb::kAlloc: {
        Treatment& version = found[action.subject];
        if (version.dropped && counts) version.recomputed = true;
        version.dropped = false;
        break;
      }
      case Verb::kSwapIn: {
        Treatment& version = found[action.subject];
        version.on_host = true;
        version.dropped = false;
        if (counts) version.swapped = true;
        break;
      }
      case Verb::kSwapOut:
        found[action.subject].on_host = true;
        break;
      case Verb::kDrop:
        found[action.subject].dropped = true;
        break;
      case Verb::kFree:
        found[action.subject].settle(counts);
        found[action.subject].on_host = false;
        break;
      case Verb::kNext:
        for (auto& [id, version] : found) {
          version.settle(i > begin);
          version.on_host = false;
        }
        break;
      default:
        break;
    }
  }
  for (auto& [id, version] : found) version.settle(true);
  return found;
}

/// The decisions of a plan, iteration by iteration, without their places.
std::vector<std::vector<Action>> decisions(const Plan& plan, std::size_t ops) {
  std::vector<std::vector<Action>> found(1);
  std::vector<bool> ran(ops);
  for (const Action& action : plan.actions) {
    switch (action.verb) {
      case Verb::kNext:
        found.emplace_back();
        ran.assign(ops, false);
        continue;
      case Verb::kRun:
        if (action.subject < ops && !ran[action.subject]) {
          ran[action.subject] = true;
          continue;
        }
        break;
      case Verb::kSwapOut:
      case Verb::kSwapIn:
      case Verb::kDrop:
      case Verb::kAwait:
        break;
      default:
        continue;
    }
    found.back().push_back({.verb = action.verb, .before = action.before, .subject = action.subject});
  }
  return found;
}

std::optional<FirstDecision> first_difference(const Plan& a, const Plan& b, std::size_t ops) {
  const auto in_a = decisions(a, ops), in_b = decisions(b, ops);
  for (std::size_t i = 0; i < std::min(in_a.size(), in_b.size()); ++i) {
    const auto [x, y] = std::ranges::mismatch(in_a[i], in_b[i]);
    FirstDecision first{.iteration = static_cast<int>(i) + 1, .a = {}, .b = {}};
    if (x != in_a[i].end()) first.a = *x;
    if (y != in_b[i].end()) first.b = *y;
    if (first.a || first.b) return first;
  }
  return {};
}

/// "drops buffer 5 (4 MiB)", for example.
std::string decision_text(const std::optional<Action>& decision, const Trace& step) {
  if (!decision) return "decides nothing more in this iteration";
  if (decision->verb == Verb::kRun) return fmt::format("runs {} again", op_text(step, OpId{decision->subject}));
  const VersionId v{decision->subject};
  const std::string buffer = fmt::format("{}, {}", buffer_text(step, step.version(v).buffer), to_text(step.size(v)));
  switch (decision->verb) {
    case Verb::kSwapOut:
      return fmt::format("copies {} to the host", buffer);
    case Verb::kSwapIn:
      return fmt::format("copies {} back", buffer);
    case Verb::kAwait:
      return fmt::format("waits for the copies of {}", buffer);
    default:
      return fmt::format("drops {}", buffer);
  }
}

}  // namespace

PlanDiff diff_plans(const Plan& a, const Plan& b, const Trace& step) {
  PlanDiff diff{.tensors = {}, .groups = {}, .first = {}, .same_actions = a == b};
  if (a.order != b.order) return diff;  // versions have other numbers
  diff.first = first_difference(a, b, step.ops().size());
  const std::map<std::uint32_t, Treatment> in_a = treatments(a), in_b = treatments(b);
  const auto offer = [&](std::uint32_t version, const Treatment& x, const Treatment& y) {
    if (x.fate() != y.fate()) diff.tensors.push_back({version, step.size(VersionId{version}), x.fate(), y.fate()});
  };
  for (const auto& [version, treatment] : in_a) {
    const auto other = in_b.find(version);
    offer(version, treatment, other == in_b.end() ? Treatment{} : other->second);
  }
  for (const auto& [version, treatment] : in_b)
    if (!in_a.contains(version)) offer(version, {}, treatment);
  std::ranges::sort(diff.tensors, [](const FateDifference& x, const FateDifference& y) {
    return std::tuple{-x.bytes.count(), x.version} < std::tuple{-y.bytes.count(), y.version};
  });
  std::map<std::pair<Fate, Fate>, FateGroup> groups;
  for (const FateDifference& each : diff.tensors) {
    FateGroup& group = groups[{each.a, each.b}];
    group = {each.a, each.b, group.tensors + 1, group.bytes + each.bytes};
  }
  for (const auto& [fates, group] : groups) diff.groups.push_back(group);
  std::ranges::stable_sort(diff.groups, std::greater{}, &FateGroup::bytes);
  return diff;
}

ComparedPlans compare_plans(const std::string& path_a, const std::string& path_b, const std::string& trace) {
  if (trace.empty())
    refuse("{} and {} are plans; expected --trace with the trace that they are for", printable(path_a),
           printable(path_b));
  ComparedPlans found{printable(path_a), printable(path_b), {}, {}, load_trace(trace), {}};
  found.a = read_plan(path_a, &found.trace);
  found.b = read_plan(path_b, &found.trace);
  found.diff = diff_plans(found.a.plan, found.b.plan, PlannedStep{found.trace, found.a.plan}.trace());
  return found;
}

std::string first_line(const ComparedPlans& found) {
  const Totals &a = found.a.predicted, &b = found.b.predicted;
  if (found.diff.same_actions)
    return fmt::format("no difference: {}, {}, peak {}", counted(a.actions, "action"), to_text(a.makespan),
                       to_text(a.peak));
  std::string time = fmt::format("{} takes as long as {} ({})", found.name_b, found.name_a, to_text(a.makespan));
  if (const Nanos more = b.makespan - a.makespan; more != Nanos{})
    time = fmt::format("{} takes {} {} than {} ({} for {})", found.name_b, to_text(std::max(more, -more)),
                       more > Nanos{} ? "more" : "less", found.name_a, to_text(b.makespan), to_text(a.makespan));
  if (found.a.plan.order != found.b.plan.order) return time + "; they run the ops in different orders";
  if (found.diff.groups.empty()) return time + "; both do the same with each tensor, at other places or times";
  const FateGroup& most = found.diff.groups[0];
  return fmt::format("{}; {} of {} {} {}, and {} in {}", time, to_text(most.bytes), counted(most.tensors, "tensor"),
                     most.tensors == 1 ? "is" : "are", word(most.b), word(most.a), found.name_a);
}

std::string tensor_name(const ComparedPlans& found, const FateDifference& tensor) {
  const PlannedStep step{found.trace, found.a.plan};
  return buffer_text(step.trace(), step.trace().version(VersionId{tensor.version}).buffer);
}

std::string first_decision_text(const ComparedPlans& found) {
  if (!found.diff.first) return "";
  const FirstDecision& first = *found.diff.first;
  const PlannedStep planned{found.trace, found.a.plan};
  const Trace& step = planned.trace();
  const auto place = [&](const std::optional<Action>& decision) {
    return decision && decision->before.valid() ? "before " + op_text(step, decision->before)
                                                : std::string{"behind the last op"};
  };
  const std::string at = place(first.a ? first.a : first.b);
  const bool apart = first.a && first.b && first.a->before != first.b->before;
  return fmt::format("first decision that differs{}: {}, {} {}; {}{} {}",
                     first.iteration > 1 ? fmt::format(", in iteration {}", first.iteration) : "", at, found.name_a,
                     decision_text(first.a, step), apart ? place(first.b) + ", " : "", found.name_b,
                     decision_text(first.b, step));
}

Json to_json(const ComparedPlans& found) {
  const auto plan = [](const PlanFile& file) {
    const Totals& cost = file.predicted;
    return Json{{"policy", file.spec.policy.text},
                {"pool", file.spec.pool.text},
                {"capacity_bytes", file.spec.capacity.count()},
                {"makespan_ns", cost.makespan.count()},
                {"peak_bytes", cost.peak.count()},
                {"footprint_bytes", cost.footprint.count()},
                {"recompute_ns", cost.recompute.count()},
                {"swap_out_bytes", cost.swap_out.count()},
                {"swap_in_bytes", cost.swap_in.count()},
                {"stall_ns", cost.stall.compute.count()}};
  };
  Json groups = Json::array(), tensors = Json::array();
  for (const FateGroup& group : found.diff.groups)
    groups.push_back(
        {{"a", word(group.a)}, {"b", word(group.b)}, {"tensors", group.tensors}, {"bytes", group.bytes.count()}});
  for (const FateDifference& each : found.diff.tensors)
    tensors.push_back({{"version", each.version},
                       {"name", tensor_name(found, each)},
                       {"a", word(each.a)},
                       {"b", word(each.b)},
                       {"bytes", each.bytes.count()}});
  Json first = nullptr;
  if (found.diff.first) {
    const auto decision = [](const std::optional<Action>& action) {
      return action ? Json{{"verb", word(action->verb)},
                           {"before_op", action->before.valid() ? Json(action->before.value()) : Json(nullptr)},
                           {action->verb == Verb::kRun ? "op" : "version", action->subject}}
                    : Json(nullptr);
    };
    first = {{"iteration", found.diff.first->iteration},
             {"a", decision(found.diff.first->a)},
             {"b", decision(found.diff.first->b)},
             {"sentence", first_decision_text(found)}};
  }
  return {{"identical", found.diff.same_actions},
          {"sentence", first_line(found)},
          {"first_decision", first},
          {"plan_a", plan(found.a)},
          {"plan_b", plan(found.b)},
          {"groups", groups},
          {"tensors", tensors}};
}

}  // namespace tidepool
