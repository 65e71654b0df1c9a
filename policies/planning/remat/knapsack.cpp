#include "policies/planning/remat/knapsack.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "simulator/bounds/linear_program.hpp"

namespace tidepool {

std::vector<bool> knapsack_greedily(const std::vector<KnapsackItem>& items, Bytes limit) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return Int128{items[a].worth.count()} * items[b].size.count() >
           Int128{items[b].worth.count()} * items[a].size.count();
  });
  std::vector<bool> taken(items.size());
  for (const std::size_t i : order) {
    if (items[i].size > limit) continue;
    taken[i] = true;
    limit -= items[i].size;
  }
  return taken;
}

std::vector<bool> knapsack_by_table(const std::vector<KnapsackItem>& items, Bytes limit) {
  constexpr std::size_t kParts = 10'000;
  std::vector<bool> taken(items.size());
  if (limit <= Bytes{}) {
    for (std::size_t i = 0; i < items.size(); ++i) taken[i] = items[i].size == Bytes{};
    return taken;
  }
  const auto parts_of = [&](Bytes size) {
    const Int128 scaled = Int128{size.count()} * static_cast<std::int64_t>(kParts);
    return static_cast<std::size_t>((scaled + limit.count() - 1) / limit.count());
  };
  std::vector<std::int64_t> best(kParts + 1);  // by parts at most
  std::vector<std::vector<bool>> takes;        // by item, by parts at most
  for (const KnapsackItem& item : items) {
    std::vector<bool>& takes_it = takes.emplace_back(kParts + 1);
    if (item.size > limit) continue;
    const std::size_t parts = parts_of(item.size);
    for (std::size_t room = kParts + 1; room-- > parts;) {
      const std::int64_t with = best[room - parts] + item.worth.count();
      if (with <= best[room]) continue;
      best[room] = with;
      takes_it[room] = true;
    }
  }
  std::size_t room = kParts;
  for (std::size_t i = items.size(); i-- > 0;) {
    if (!takes[i][room]) continue;
    taken[i] = true;
    room -= parts_of(items[i].size);
  }
  return taken;
}

std::vector<bool> knapsack_by_shares(const std::vector<KnapsackItem>& items, Bytes whole, double share) {
  constexpr double kParts = 10'000;
  const auto parts_of = [&](double part) { return static_cast<std::size_t>(std::nearbyint(part * kParts)); };
  const std::size_t room = parts_of(share);
  const double giga = static_cast<double>(whole.count()) / 1e9;  // the order of roundings is the source's
  std::vector<std::size_t> parts;
  std::vector<std::vector<float>> best{std::vector<float>(room + 1)};  // by item, by parts at most
  for (const KnapsackItem& item : items) {
    parts.push_back(parts_of(static_cast<double>(item.size.count()) / 1e9 / giga));
    const auto worth = static_cast<float>(item.worth.count());
    const std::vector<float>& before = best.back();
    std::vector<float> with = before;
    for (std::size_t r = parts.back(); r <= room; ++r)
      with[r] = parts.back() == 0 ? before[r] + worth : std::max(before[r], before[r - parts.back()] + worth);
    best.push_back(std::move(with));
  }
  std::vector<bool> taken(items.size());
  std::size_t rest = room;
  for (std::size_t i = items.size(); i-- > 0;) {
    if (best[i + 1][rest] == best[i][rest]) continue;
    taken[i] = true;
    rest -= parts[i];
  }
  return taken;
}

std::vector<bool> knapsack_exactly(const std::vector<KnapsackItem>& items, Bytes limit) {
  Nanos total;
  for (const KnapsackItem& item : items) total += item.worth;
  const double worth_unit = static_cast<double>(std::max<std::int64_t>(total.count(), 1));
  const double size_unit = static_cast<double>(std::max<std::int64_t>(limit.count(), 1));
  LinearProgram program;
  const std::uint32_t row =
      program.row(-LinearProgram::kInfinity, static_cast<double>(std::max(limit, Bytes{}).count()) / size_unit);
  for (const KnapsackItem& item : items) {
    const std::uint32_t variable =
        program.integer(0, item.size <= limit ? 1 : 0, -static_cast<double>(item.worth.count()) / worth_unit);
    if (item.size <= limit) program.add(row, variable, static_cast<double>(item.size.count()) / size_unit);
  }
  const LinearProgram::Solution solution = program.solve();
  std::vector<bool> taken(items.size());
  for (std::size_t i = 0; i < solution.x.size(); ++i) taken[i] = solution.x[i] > 0.5;
  return taken;
}

}  // namespace tidepool
