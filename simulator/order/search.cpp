#include "simulator/order/search.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>

namespace tidepool {
namespace {

using Ops = std::vector<std::uint32_t>;

/// Largest number of ops that eager_order() brings forward together.
constexpr std::size_t kMostTogether = 64;
/// Orders that move_ops() looks at.
constexpr int kMostMoves = 20'000;
/// Steps and sets of ops that lowest_peak_order() searches exactly.
constexpr std::size_t kFewOps = 64, kMostSets = 200'000;

OpOrder order_of(const Lifetimes& lifetimes, Ops ops, std::string rule) {
  const Bytes peak = lifetimes.peak(ops);
  return {std::move(ops), peak, std::move(rule)};
}

/// Buffers while ops run one after the other.
class Live {
 public:
  explicit Live(const Lifetimes& lifetimes) : lifetimes_{lifetimes} {
    for (std::uint32_t b = 0; b < lifetimes.trace().buffers().size(); ++b) left_.push_back(lifetimes.count(b));
  }
  /// Bytes by which the live ones change when `op` runs.
  Bytes growth(std::uint32_t op) const {
    Bytes sum;
    for (const std::uint32_t b : lifetimes_.needed_by(op)) {
      const Buffer& spec = lifetimes_.trace().buffers()[b];
      if (!spec.born_before && left_[b] == lifetimes_.count(b)) sum += spec.size;
      if (!spec.outlives && left_[b] == 1) sum -= spec.size;
    }
    return sum;
  }
  void run(std::uint32_t op) {
    for (const std::uint32_t b : lifetimes_.needed_by(op)) --left_[b];
  }
  void take_back(std::uint32_t op) {
    for (const std::uint32_t b : lifetimes_.needed_by(op)) ++left_[b];
  }

 private:
  const Lifetimes& lifetimes_;
  std::vector<std::uint32_t> left_;  // by buffer: ops that will need it
};

/// Ops with all that must run before and after them, in a run from the first op on.
struct Progress {
  explicit Progress(const Dependencies& all) : dependencies{all}, done(all.before.size()) {}
  bool may_run(std::uint32_t op) const {
    return !done[op] && std::all_of(dependencies.before[op].begin(), dependencies.before[op].end(),
                                    [&](std::uint32_t other) { return done[other]; });
  }
  const Dependencies& dependencies;
  std::vector<bool> done;  // by op
};

/// The ops that `op` still waits for, with itself, in the recorded order; nothing if they are too many.
std::optional<Ops> needed_for(std::uint32_t op, const Progress& progress) {
  Ops found{op};
  std::vector<std::uint32_t>::size_type next = 0;
  while (next < found.size()) {
    for (const std::uint32_t other : progress.dependencies.before[found[next]])
      if (!progress.done[other] && std::find(found.begin(), found.end(), other) == found.end()) found.push_back(other);
    if (found.size() > kMostTogether) return std::nullopt;
    ++next;
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Moves all of `group`, positions in `order`, in front of position `to` (or behind it), keeping their order.
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

/// Marks `op` and all that it needs (or that needs it) among `order[first, last)`.
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

OpOrder recorded_order(const Lifetimes& lifetimes) {
  Ops ops(lifetimes.trace().ops().size());
  std::iota(ops.begin(), ops.end(), 0u);
  return order_of(lifetimes, std::move(ops), "recorded");
}

OpOrder least_growth_order(const Lifetimes& lifetimes, const Dependencies& dependencies) {
  const auto count = static_cast<std::uint32_t>(dependencies.before.size());
  Live live{lifetimes};
  std::vector<std::size_t> waits(count);
  Ops ready, order;
  for (std::uint32_t op = 0; op < count; ++op) {
    waits[op] = dependencies.before[op].size();
    if (waits[op] == 0) ready.push_back(op);
  }
  while (!ready.empty()) {
    const auto best = std::min_element(ready.begin(), ready.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair{live.growth(a), a} < std::pair{live.growth(b), b};
    });
    const std::uint32_t op = *best;
    ready.erase(best);
    live.run(op);
    order.push_back(op);
    for (const std::uint32_t other : dependencies.after[op])
      if (--waits[other] == 0) ready.push_back(other);
  }
  return order_of(lifetimes, std::move(order), "least");
}

OpOrder latest_order(const Lifetimes& lifetimes, const Dependencies& dependencies) {
  const auto count = static_cast<std::uint32_t>(dependencies.before.size());
  Live live{lifetimes};
  for (std::uint32_t op = 0; op < count; ++op) live.run(op);
  std::vector<std::size_t> waits(count);
  Ops ready, order;
  for (std::uint32_t op = 0; op < count; ++op) {
    waits[op] = dependencies.after[op].size();
    if (waits[op] == 0) ready.push_back(op);
  }
  const auto growth = [&](std::uint32_t op) {
    live.take_back(op);
    const Bytes bytes = live.growth(op);
    live.run(op);
    return bytes;
  };
  while (!ready.empty()) {
    const auto best = std::max_element(ready.begin(), ready.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair{growth(a), a} < std::pair{growth(b), b};
    });
    const std::uint32_t op = *best;
    ready.erase(best);
    live.take_back(op);
    order.push_back(op);
    for (const std::uint32_t other : dependencies.before[op])
      if (--waits[other] == 0) ready.push_back(other);
  }
  std::reverse(order.begin(), order.end());
  return order_of(lifetimes, std::move(order), "latest");
}

OpOrder eager_order(const Lifetimes& lifetimes, const Dependencies& dependencies) {
  Live live{lifetimes};
  Progress progress{dependencies};
  Ops last_user(lifetimes.trace().buffers().size()), order;  // by buffer: the last op that needs it, as recorded
  for (std::uint32_t op = 0; op < progress.done.size(); ++op)
    for (const std::uint32_t b : lifetimes.needed_by(op)) last_user[b] = op;
  const auto run = [&](std::uint32_t op) {
    live.run(op);
    progress.done[op] = true;
    order.push_back(op);
  };
  for (std::uint32_t next = 0; next < progress.done.size(); ++next) {
    if (progress.done[next]) continue;
    run(next);
    for (std::size_t i = order.size() - 1; i < order.size(); ++i)
      for (const std::uint32_t b : lifetimes.needed_by(order[i])) {
        if (progress.done[last_user[b]]) continue;
        const std::optional<Ops> together = needed_for(last_user[b], progress);
        if (!together) continue;
        Bytes growth;
        for (const std::uint32_t op : *together) growth += live.growth(op), live.run(op);
        for (const std::uint32_t op : *together) live.take_back(op);
        if (growth < Bytes{}) std::for_each(together->begin(), together->end(), run);
      }
  }
  return order_of(lifetimes, std::move(order), "eager");
}

OpOrder move_ops(OpOrder order, const Lifetimes& lifetimes, const Dependencies& dependencies) {
  int left = kMostMoves;
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

OpOrder lowest_peak_order(const Lifetimes& lifetimes, const Dependencies& dependencies) {
  if (OpOrder exact = exact_order(lifetimes, dependencies, kMostSets); exact.exact) return exact;
  OpOrder best = recorded_order(lifetimes);
  for (OpOrder order : {least_growth_order(lifetimes, dependencies), eager_order(lifetimes, dependencies),
                        latest_order(lifetimes, dependencies)})
    if (order.peak < best.peak) best = std::move(order);
  if (best.peak == peak_bound(lifetimes)) return best;
  return move_ops(std::move(best), lifetimes, dependencies);
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
