#include "simulator/sweep/frontier_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "simulator/bounds/bound_cache.hpp"
#include "simulator/options.hpp"
#include "traces/error.hpp"

namespace tidepool {
namespace {

/// The bound of a run over the time without limits, less 1; infinite if no plan exists.
std::optional<double> bound_of(const Row& row) {
  const auto* bound = std::get_if<std::int64_t>(&at(row, "bound_ns"));
  const auto* baseline = std::get_if<std::int64_t>(&at(row, "baseline_ns"));
  if (bound && baseline && *baseline > 0) return static_cast<double>(*bound) / static_cast<double>(*baseline) - 1;
  if (!bound && std::holds_alternative<std::string>(at(row, "bound_kind")))
    return std::numeric_limits<double>::infinity();
  return {};
}

/// allowed_by() of a policy; "" for a policy of a plug-in that is not loaded.
std::string allowed_or_nothing(const std::string& policy) {
  try {
    return allowed_by(policy);
  } catch (const InputError&) {
    return "";
  }
}

}  // namespace

Point point_of(const Row& row, const std::string& policy, const std::string& pool) {
  const auto* capacity = std::get_if<std::int64_t>(&at(row, "capacity_bytes"));
  const auto* ratio = std::get_if<double>(&at(row, "overhead_ratio"));
  return {.policy = policy,
          .pool = pool,
          .addresses = std::get<bool>(at(row, "addresses")),
          .capacity = capacity ? Bytes{*capacity} : kNoLimit,
          .outcome = find_outcome(text_at(row, "outcome")),
          .overhead = ratio ? *ratio - 1 : 0,
          .may = allowed_or_nothing(policy),
          .bound = bound_of(row)};
}

WrittenNames written_names(const Row& row) {
  // A row's options are those of the pool, then those of each policy, each as NAME(...). Defaults are left out.
  std::string_view options = text_at(row, "options");
  const auto with_options = [&](const std::string& name) {
    if (!options.starts_with(name + "(")) return name;
    std::size_t end = 0, open = 0;
    do {
      if (options[end] == '(') ++open;
      if (options[end] == ')') --open;
      ++end;
    } while (end < options.size() && (open > 0 || options[end] != ' '));
    const std::string text{options.substr(0, end)};
    options.remove_prefix(std::min(end + 1, options.size()));
    return text;
  };
  WrittenNames names;
  names.pool = with_options(text_at(row, "pool"));
  for (const std::string& policy : split_list(text_at(row, "policy"), '+'))
    names.policy += (names.policy.empty() ? "" : "+") + with_options(policy);
  return names;
}

std::vector<Frontier> frontiers_of(std::span<const Row> rows) {
  struct Group {
    std::string key;
    Frontier frontier;
    std::vector<Point> points;
  };
  std::vector<Group> groups;
  for (const Row& row : rows) {
    const std::string key = fmt::format(
        "{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", text_at(row, "trace_hash"), text_at(row, "machine_hash"),
        text_at(row, "assume"), value_text(at(row, "overhead_limit")), std::get<std::int64_t>(at(row, "iterations")),
        value_text(at(row, "steady")), value_text(at(row, "count_search")), text_at(row, "version"));
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& other) { return other.key == key; });
    if (group == groups.end()) {
      groups.push_back({key, {}, {}});
      group = std::prev(groups.end());
      group->frontier.trace = std::filesystem::path{text_at(row, "trace")}.filename().string();
      group->frontier.machine = text_at(row, "machine");
    }
    if (const auto* peak = std::get_if<std::int64_t>(&at(row, "ideal_peak_bytes")))
      group->frontier.ideal_peak = Bytes{*peak};
    if (const auto* baseline = std::get_if<std::int64_t>(&at(row, "baseline_ns")))
      group->frontier.baseline = Nanos{*baseline};
    const auto [pool, policy] = written_names(row);
    group->points.push_back(point_of(row, policy, pool));
  }
  std::vector<Frontier> frontiers;
  for (Group& group : groups) {
    arrange(group.points, group.frontier);
    frontiers.push_back(std::move(group.frontier));
  }
  return frontiers;
}

}  // namespace tidepool
