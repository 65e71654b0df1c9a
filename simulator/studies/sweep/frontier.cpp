#include "simulator/studies/sweep/frontier.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "simulator/options.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "traces/base/error.hpp"
#include "traces/base/text.hpp"

namespace tidepool {

namespace {

Cell median(std::vector<Cell> cells) {
  std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.better_than(b); });
  return cells.empty() ? Cell{} : cells[cells.size() / 2];
}

/// Adds a line of bounds for each set of actions that policies may take. The empty set, as for policy none, has no
/// line.
void arrange_bounds(std::span<const Point> points, Frontier& frontier) {
  for (const Point& point : points) {
    if (!point.bound || point.may.empty()) continue;
    auto line = std::find_if(frontier.bounds.begin(), frontier.bounds.end(),
                             [&](const Line& other) { return other.policy == point.may; });
    if (line == frontier.bounds.end())
      line = frontier.bounds.insert(line, {point.may, "", true, std::vector<Cell>(frontier.capacities.size())});
    const auto capacity = std::lower_bound(frontier.capacities.begin(), frontier.capacities.end(), point.capacity);
    line->cells[static_cast<std::size_t>(capacity - frontier.capacities.begin())] = {
        true, std::isinf(*point.bound) ? Outcome::kInfeasible : Outcome::kOk, *point.bound};
  }
}

/// The pools of the cells, each once, in the order of the capacities.
std::string pools_of(const Line& line) {
  std::vector<std::string> pools;
  for (const Cell& cell : line.cells)
    if (cell.tried && std::find(pools.begin(), pools.end(), cell.pool) == pools.end()) pools.push_back(cell.pool);
  return fmt::format("{}", fmt::join(pools, ", "));
}

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

/// Rows with different values in one of these columns are in different frontiers.
constexpr std::array kOfFrontier{"trace_hash", "machine_hash", "assume",       "overhead_limit",
                                 "iterations", "steady",       "count_search", "version"};
constexpr std::size_t kFirstSetting = 2;  // the trace and the machine have names in a frontier

struct Group {
  std::vector<Value> key;      // of kOfFrontier
  std::filesystem::path path;  // of the trace
  Frontier frontier;
  std::vector<Point> points;
};

/// The file name of a group's trace; its path if another trace has the same file name.
std::string frontier_title(const Group& group, const std::vector<Group>& groups) {
  const std::filesystem::path name = group.path.filename();
  const bool ambiguous = std::any_of(groups.begin(), groups.end(), [&](const Group& other) {
    return other.key[0] != group.key[0] && other.path.filename() == name;
  });
  return (ambiguous ? group.path : name).string();
}

/// Frontier::setting of a group.
std::string setting_of(const Group& group, const std::vector<Group>& groups) {
  std::string setting;
  for (std::size_t i = kFirstSetting; i < kOfFrontier.size(); ++i) {
    const bool differs = std::any_of(groups.begin(), groups.end(), [&](const Group& other) {
      return other.frontier.trace == group.frontier.trace && other.frontier.machine == group.frontier.machine &&
             other.key[i] != group.key[i];
    });
    if (!differs) continue;
    std::string name = kOfFrontier[i];
    std::replace(name.begin(), name.end(), '_', ' ');
    setting += setting.empty() ? "" : ", ";
    if (const auto* flag = std::get_if<bool>(&group.key[i]))
      setting += *flag ? name : "not " + name;
    else
      setting += name + " " + value_text(group.key[i]);
  }
  return setting;
}

}  // namespace

bool Cell::better_than(const Cell& other) const {
  if (tried != other.tried) return tried;
  if (outcome != other.outcome) return outcome < other.outcome;
  return outcome == Outcome::kOk && overhead < other.overhead;
}

void arrange(std::span<const Point> points, Frontier& frontier) {
  std::vector<Bytes>& capacities = frontier.capacities;
  for (const Point& point : points) capacities.push_back(point.capacity);
  std::sort(capacities.begin(), capacities.end());
  capacities.erase(std::unique(capacities.begin(), capacities.end()), capacities.end());

  std::map<std::pair<std::string, std::string>, std::size_t> line_of;
  std::vector<std::vector<std::vector<Cell>>> seeds;  // by line and capacity
  for (const Point& point : points) {
    const auto [found, is_new] = line_of.try_emplace({point.policy, point.pool}, frontier.lines.size());
    if (is_new) {
      frontier.lines.push_back({point.policy, point.pool, point.addresses, {}});
      seeds.emplace_back(capacities.size());
    }
    const auto capacity = std::lower_bound(capacities.begin(), capacities.end(), point.capacity) - capacities.begin();
    seeds[found->second][static_cast<std::size_t>(capacity)].push_back(
        {true, point.outcome, point.overhead, point.pool, point.between});
  }
  for (std::size_t i = 0; i < frontier.lines.size(); ++i)
    for (std::vector<Cell>& cells : seeds[i]) frontier.lines[i].cells.push_back(median(std::move(cells)));
  arrange_bounds(points, frontier);
}

std::vector<Line> best_pools(const Frontier& frontier) {
  const bool any_addresses =
      std::any_of(frontier.lines.begin(), frontier.lines.end(), [](const Line& line) { return line.addresses; });
  std::vector<Line> best;
  for (const Line& line : frontier.lines) {
    if (any_addresses && !line.addresses) continue;
    const auto known =
        std::find_if(best.begin(), best.end(), [&](const Line& other) { return other.policy == line.policy; });
    if (known == best.end()) {
      best.push_back(line);
      continue;
    }
    for (std::size_t i = 0; i < line.cells.size(); ++i)
      if (line.cells[i].better_than(known->cells[i])) known->cells[i] = line.cells[i];
  }
  for (Line& line : best) line.pool = pools_of(line);
  return best;
}

std::string fraction_text(Bytes capacity, Bytes ideal_peak) {
  if (capacity == kNoLimit) return "none";
  if (ideal_peak == Bytes{}) return to_text(capacity);
  return with_digits(static_cast<double>(capacity.count()) / static_cast<double>(ideal_peak.count()), 3) + "x";
}

Point point_of(const Row& row, const std::string& policy, const std::string& pool) {
  const auto* capacity = std::get_if<std::int64_t>(&at(row, "capacity_bytes"));
  const auto* ratio = std::get_if<double>(&at(row, "overhead_ratio"));
  return {.policy = policy,
          .pool = pool,
          .addresses = std::get<bool>(at(row, "addresses")),
          .capacity = capacity ? Bytes{*capacity} : kNoLimit,
          .outcome = find_outcome(text_at(row, "outcome")),
          .overhead = ratio ? std::optional{*ratio - 1} : std::nullopt,
          .may = allowed_or_nothing(policy),
          .bound = bound_of(row),
          .between = between_of(row)};
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
  std::vector<Group> groups;
  for (const Row& row : rows) {
    std::vector<Value> key;
    for (const char* column : kOfFrontier) key.push_back(at(row, column));
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& other) { return other.key == key; });
    if (group == groups.end()) {
      groups.push_back({std::move(key), {}, {}, {}});
      group = std::prev(groups.end());
      group->path = text_at(row, "trace");
      group->frontier.machine = text_at(row, "machine");
    }
    if (const auto* peak = std::get_if<std::int64_t>(&at(row, "ideal_peak_bytes")))
      group->frontier.ideal_peak = Bytes{*peak};
    if (const auto* baseline = std::get_if<std::int64_t>(&at(row, "baseline_ns")))
      group->frontier.baseline = Nanos{*baseline};
    const auto [pool, policy] = written_names(row);
    group->points.push_back(point_of(row, policy, pool));
  }
  for (Group& group : groups) group.frontier.trace = frontier_title(group, groups);
  std::vector<Frontier> frontiers;
  for (const Group& group : groups) {
    Frontier& frontier = frontiers.emplace_back(group.frontier);
    arrange(group.points, frontier);
    frontier.setting = setting_of(group, groups);
  }
  return frontiers;
}

}  // namespace tidepool
