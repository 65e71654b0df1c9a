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

}  // namespace

PlanDiff diff_plans(const Plan& a, const Plan& b, const Trace& step) {
  PlanDiff diff{.tensors = {}, .groups = {}, .same_actions = a == b};
  if (a.order != b.order) return diff;  // versions have other numbers
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
                {"swap_in_bytes", cost.swap_in.count()}};
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
  return {{"identical", found.diff.same_actions},
          {"sentence", first_line(found)},
          {"plan_a", plan(found.a)},
          {"plan_b", plan(found.b)},
          {"groups", groups},
          {"tensors", tensors}};
}

}  // namespace tidepool
