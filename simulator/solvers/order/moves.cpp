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

/// Marks `op` and all ops that it needs (or that need it) among `order[first, last)`.
std::vector<bool> closure(std::uint32_t op, const Ops& order, std::size_t first, std::size_t last,
                          const std::vector<std::vector<std::uint32_t>>& edges) {
  std::vector<bool> range(order.size()), found(order.size());
  for (std::size_t i = first; i < last; ++i) range[order[i]] = true;
  Ops reached{op};
  found[op] = true;
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const std::uint32_t other : edges[reached[i]])
      if (range[other] && !found[other]) found[other] = true, reached.push_back(other);
  return found;
}

}  // namespace

OpOrder move_ops(OpOrder order, const Lifetimes& lifetimes, const Dependencies& dependencies, int most) {
  int left = most;
  const auto try_move = [&](const std::vector<bool>& group, std::size_t at, bool behind) {
    --left;
    Ops ops = moved(order.ops, group, at, behind);
    const Bytes peak = lifetimes.peak(ops);
    if (peak >= order.peak) return false;
    order = {std::move(ops), peak, "moved"};
    return true;
  };
  for (bool improved = true; improved && left > 0;) {
    improved = false;
    const std::vector<Bytes> load = lifetimes.load(order.ops);
    const auto at = static_cast<std::size_t>(std::max_element(load.begin(), load.end()) - load.begin());
    for (std::size_t i = 0; i < at && !improved && left > 0; ++i) {
      const std::vector<bool> group = closure(order.ops[i], order.ops, i, at + 1, dependencies.after);
      if (!group[order.ops[at]]) improved = try_move(group, at, true);
    }
    for (std::size_t i = at + 1; i < order.ops.size() && !improved && left > 0; ++i) {
      const std::vector<bool> group = closure(order.ops[i], order.ops, at, i + 1, dependencies.before);
      if (!group[order.ops[at]]) improved = try_move(group, at, false);
    }
  }
  return order;
}

}  // namespace tidepool
