#include <algorithm>
#include <utility>

#include "simulator/solvers/order/search.hpp"

namespace tidepool {
namespace {

using Ops = std::vector<std::uint32_t>;

/// Moves all ops of a group in front of position `to` (or behind it). They keep their order.
Ops moved(const Ops& order, const std::vector<bool>& in_group, std::size_t to, bool behind) {
  Ops result, group;
  for (const std::uint32_t op : order)
    if (in_group[op]) group.push_back(op);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == to && !behind) result.insert(result.end(), group.begin(), group.end());
    if (!in_group[order[i]]) result.push_back(order[i]);
    if (i == to && behind) result.insert(result.end(), group.begin(), group.end());
  }
  return result;
}

/// Marks `op` and all ops that it needs (or that need it) among those at positions [first, last].
std::vector<bool> closure(std::uint32_t op, const Ops& position, std::size_t first, std::size_t last,
                          const std::vector<std::vector<std::uint32_t>>& edges) {
  std::vector<bool> found(position.size());
  Ops reached{op};
  found[op] = true;
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const std::uint32_t other : edges[reached[i]])
      if (position[other] >= first && position[other] <= last && !found[other])
        found[other] = true, reached.push_back(other);
  return found;
}

}  // namespace

OpOrder move_ops(OpOrder order, const Lifetimes& lifetimes, const Dependencies& dependencies, int most) {
  const std::size_t count = order.ops.size();
  auto left = static_cast<std::size_t>(std::max(most, 0));
  if (count > kMostOpsOfAllMoves) left = std::max<std::size_t>(1, left * kMostOpsOfAllMoves / count);
  const auto try_move = [&](const std::vector<bool>& group, std::size_t at, bool behind) {
    --left;
    Ops ops = moved(order.ops, group, at, behind);
    const Bytes peak = lifetimes.peak(ops);
    if (peak >= order.peak) return false;
    order = {std::move(ops), peak, "moved"};
    return true;
  };
  Ops position(count);
  for (bool improved = true; improved && left > 0;) {
    improved = false;
    for (std::size_t i = 0; i < count; ++i) position[order.ops[i]] = static_cast<std::uint32_t>(i);
    const std::vector<Bytes> load = lifetimes.load(order.ops);
    const auto at = static_cast<std::size_t>(std::max_element(load.begin(), load.end()) - load.begin());
    const std::uint32_t peak = order.ops[at];
    // An op that the op at the peak needs, or that needs it, cannot move past it.
    const std::vector<bool> needed = closure(peak, position, 0, at, dependencies.before);
    for (std::size_t i = 0; i < at && !improved && left > 0; ++i)
      if (const std::uint32_t op = order.ops[i]; !needed[op])
        improved = try_move(closure(op, position, i, at, dependencies.after), at, true);
    if (improved) continue;
    const std::vector<bool> needing = closure(peak, position, at, count - 1, dependencies.after);
    for (std::size_t i = at + 1; i < count && !improved && left > 0; ++i)
      if (const std::uint32_t op = order.ops[i]; !needing[op])
        improved = try_move(closure(op, position, at, i, dependencies.before), at, false);
  }
  return order;
}

}  // namespace tidepool
