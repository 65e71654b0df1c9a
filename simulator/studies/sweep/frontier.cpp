#include "simulator/studies/sweep/frontier.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "simulator/run_spec.hpp"
#include "traces/base/digits.hpp"

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
        {true, point.outcome, point.overhead, point.pool});
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

}  // namespace tidepool
