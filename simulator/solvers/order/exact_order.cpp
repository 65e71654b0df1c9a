#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "simulator/solvers/order/search.hpp"

namespace tidepool {
namespace {

using Ops = std::vector<std::uint32_t>;

constexpr std::size_t kFewOps = 64;  // a set of ops is the bits of a word

}  // namespace

OpOrder exact_order(const Lifetimes& lifetimes, const Dependencies& dependencies, std::size_t most_sets) {
  OpOrder recorded = recorded_order(lifetimes);
  const std::size_t count = recorded.ops.size();
  if (count == 0 || count > kFewOps) return recorded;
  struct Reached {
    Bytes peak;
    std::uint32_t last = 0;  // the op that led here
    bool settled = false;
  };
  const std::uint64_t all = count == kFewOps ? ~std::uint64_t{} : (std::uint64_t{1} << count) - 1;
  std::vector<std::uint64_t> before(count);
  for (std::size_t op = 0; op < count; ++op)
    for (const std::uint32_t other : dependencies.before[op]) before[op] |= std::uint64_t{1} << other;
  const auto order_to = [&](const std::unordered_map<std::uint64_t, Reached>& reached, std::uint64_t set) {
    Ops ops;
    for (; set != 0; set &= ~(std::uint64_t{1} << ops.back())) ops.push_back(reached.at(set).last);
    std::reverse(ops.begin(), ops.end());
    return ops;
  };
  std::unordered_map<std::uint64_t, Reached> reached{{0, {}}};
  using Entry = std::pair<Bytes, std::uint64_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  open.push({Bytes{}, 0});
  while (!open.empty()) {
    const auto [peak, set] = open.top();
    open.pop();
    if (std::exchange(reached[set].settled, true)) continue;
    if (set == all) {
      OpOrder best = order_of(lifetimes, order_to(reached, set), "exact");
      best.exact = true;
      return best;
    }
    if (reached.size() > most_sets) break;
    Ops ops = order_to(reached, set);
    for (std::uint32_t op = 0; op < count; ++op) {
      const std::uint64_t bit = std::uint64_t{1} << op;
      if ((set & bit) != 0 || (before[op] & ~set) != 0) continue;
      ops.push_back(op);
      const Bytes with = std::max(peak, lifetimes.load(ops).back());
      ops.pop_back();
      const auto [known, is_new] = reached.try_emplace(set | bit, Reached{with, op});
      if (!is_new && (known->second.settled || known->second.peak <= with)) continue;
      known->second = {with, op};
      open.push({with, set | bit});
    }
  }
  return recorded;
}

}  // namespace tidepool
