#include "simulator/solvers/order/alive.hpp"

#include <algorithm>

#include "traces/step/op_order.hpp"

namespace tidepool {

OpSets reachable_ops(const std::vector<std::vector<std::uint32_t>>& edges, bool forward) {
  const std::size_t count = edges.size();
  OpSets reached{count, count};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t op = forward ? i : count - 1 - i;
    for (const std::uint32_t other : edges[op]) {
      reached.add(op, other);
      reached.add_all(op, other);
    }
  }
  return reached;
}

Bytes alive_bound(const Lifetimes& lifetimes, const Dependencies& dependencies) {
  const Trace& trace = lifetimes.trace();
  const std::size_t count = trace.ops().size();
  if (count > kMostReached) return peak_bound(lifetimes);
  const OpSets before = reachable_ops(dependencies.before, true), after = reachable_ops(dependencies.after, false);
  std::vector<std::vector<std::uint32_t>> users(trace.buffers().size());
  for (std::uint32_t op = 0; op < count; ++op)
    for (const std::uint32_t buffer : lifetimes.needed_by(op)) users[buffer].push_back(op);
  Bytes most = lifetimes.always();
  for (std::uint32_t op = 0; op < count; ++op) {
    Bytes alive = lifetimes.always();
    for (std::uint32_t buffer = 0; buffer < users.size(); ++buffer) {
      const Buffer& spec = trace.buffers()[buffer];
      if (spec.born_before && spec.outlives) continue;
      const auto any = [&](const OpSets& set) {
        return std::any_of(users[buffer].begin(), users[buffer].end(),
                           [&](std::uint32_t user) { return user == op || set.has(op, user); });
      };
      if ((spec.born_before || any(before)) && (spec.outlives || any(after))) alive += spec.size;
    }
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace tidepool
