#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "simulator/solvers/order/search.hpp"

namespace tidepool {
namespace {

using Ops = std::vector<std::uint32_t>;

/// Largest number of ops that eager_order() brings forward together.
constexpr std::size_t kMostTogether = 64;

/// The live buffers while ops run one after the other.
class Live {
 public:
  explicit Live(const Lifetimes& lifetimes) : lifetimes_{lifetimes} {
    for (std::uint32_t b = 0; b < lifetimes.trace().buffers().size(); ++b) left_.push_back(lifetimes.count(b));
  }
  /// The change in live bytes when `op` runs.
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
  /// The number of ops that will need a buffer.
  std::uint32_t left(std::uint32_t buffer) const { return left_[buffer]; }

 private:
  const Lifetimes& lifetimes_;
  std::vector<std::uint32_t> left_;  // by buffer: ops that will need it
};

/// All ops in an order in which each comes behind those that it waits for. Of the ops that may come next, always takes
/// the one with the first (growth, op) by `After`. O((uses + pairs) * log(ops)), unless ops need thousands of buffers.
/// @param run      takes an op
/// @param changes  changes(buffer): whether taking an op that needs the buffer may have changed the growth of others
template <class After, class Growth, class Run, class Changes>
Ops scheduled(const Lifetimes& lifetimes, const std::vector<Ops>& waits_for, const std::vector<Ops>& waited_by,
              Growth growth, Run run, Changes changes) {
  using Entry = std::pair<Bytes, std::uint32_t>;
  const auto count = static_cast<std::uint32_t>(waits_for.size());
  std::vector<Ops> users(lifetimes.trace().buffers().size());  // by buffer
  std::vector<std::size_t> waits(count);
  std::vector<std::optional<Bytes>> growths(count);  // by op that may come next
  std::priority_queue<Entry, std::vector<Entry>, After> ready;
  const auto offer = [&](std::uint32_t op) {
    const Bytes now = growth(op);
    if (growths[op] != now) ready.emplace(now, op);
    growths[op] = now;
  };
  for (std::uint32_t op = 0; op < count; ++op) {
    for (const std::uint32_t b : lifetimes.needed_by(op)) users[b].push_back(op);
    waits[op] = waits_for[op].size();
    if (waits[op] == 0) offer(op);
  }
  Ops order;
  while (!ready.empty()) {
    const auto [bytes, op] = ready.top();
    ready.pop();
    if (growths[op] != bytes) continue;  // an entry with an old growth
    growths[op].reset();
    run(op);
    order.push_back(op);
    for (const std::uint32_t b : lifetimes.needed_by(op)) {
      if (!changes(b)) continue;
      for (const std::uint32_t other : users[b])
        if (growths[other]) offer(other);
    }
    for (const std::uint32_t other : waited_by[op])
      if (--waits[other] == 0) offer(other);
  }
  return order;
}

/// The ops that have run, and the dependencies of all ops.
struct Progress {
  explicit Progress(const Dependencies& all) : dependencies{all}, done(all.before.size()), seen(all.before.size()) {}
  const Dependencies& dependencies;
  std::vector<bool> done;           // by op
  std::vector<std::uint64_t> seen;  // by op: the last search by needed_for() that found it
  std::uint64_t searches = 0;
};

/// `op` and the ops that it still waits for, in the recorded order; none if they are too many.
std::optional<Ops> needed_for(std::uint32_t op, Progress& progress) {
  Ops found{op};
  progress.seen[op] = ++progress.searches;
  for (std::size_t next = 0; next < found.size(); ++next)
    for (const std::uint32_t other : progress.dependencies.before[found[next]]) {
      if (progress.done[other] || std::exchange(progress.seen[other], progress.searches) == progress.searches) continue;
      found.push_back(other);
      if (found.size() > kMostTogether) return std::nullopt;
    }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

OpOrder least_growth_order(const Lifetimes& lifetimes, const Dependencies& dependencies) {
  Live live{lifetimes};
  const auto growth = [&](std::uint32_t op) { return live.growth(op); };
  const auto run = [&](std::uint32_t op) { live.run(op); };
  // Growth counts whether the op is the first one that needs a buffer, and whether it is the last one.
  const auto changes = [&](std::uint32_t b) { return live.left(b) + 1 == lifetimes.count(b) || live.left(b) == 1; };
  return order_of(lifetimes,
                  scheduled<std::greater<>>(lifetimes, dependencies.before, dependencies.after, growth, run, changes),
                  "least");
}

OpOrder latest_order(const Lifetimes& lifetimes, const Dependencies& dependencies) {
  Live live{lifetimes};
  for (std::uint32_t op = 0; op < dependencies.before.size(); ++op) live.run(op);
  const auto growth = [&](std::uint32_t op) {
    live.take_back(op);
    const Bytes bytes = live.growth(op);
    live.run(op);
    return bytes;
  };
  const auto run = [&](std::uint32_t op) { live.take_back(op); };
  const auto changes = [&](std::uint32_t b) { return live.left(b) == 1 || live.left(b) + 1 >= lifetimes.count(b); };
  Ops order = scheduled<std::less<>>(lifetimes, dependencies.after, dependencies.before, growth, run, changes);
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

}  // namespace tidepool
