#include "traces/step/op_order.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tidepool {

OpOrder order_of(const Lifetimes& lifetimes, std::vector<std::uint32_t> ops, std::string rule) {
  const Bytes peak = lifetimes.peak(ops);
  return {std::move(ops), peak, std::move(rule)};
}

OpOrder recorded_order(const Lifetimes& lifetimes) {
  std::vector<std::uint32_t> ops(lifetimes.trace().ops().size());
  std::iota(ops.begin(), ops.end(), 0u);
  return order_of(lifetimes, std::move(ops), "recorded");
}

Bytes peak_bound(const Lifetimes& lifetimes) {
  Bytes most;
  for (std::uint32_t op = 0; op < lifetimes.trace().ops().size(); ++op) {
    Bytes needed = lifetimes.always();
    for (const std::uint32_t b : lifetimes.needed_by(op)) needed += lifetimes.trace().buffers()[b].size;
    most = std::max(most, needed);
  }
  return most;
}

}  // namespace tidepool
