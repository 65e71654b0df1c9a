#include <algorithm>
#include <optional>
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

 private:
  const Lifetimes& lifetimes_;
  std::vector<std::uint32_t> left_;  // by buffer: ops that will need it
};

/// The ops that have run, and the dependencies of all ops.
struct Progress {
  explicit Progress(const Dependencies& all) : dependencies{all}, done(all.before.size()) {}
  bool may_run(std::uint32_t op) const {
    return !done[op] && std::all_of(dependencies.before[op].begin(), dependencies.before[op].end(),
                                    [&](std::uint32_t other) { return done[other]; });
  }
  const Dependencies& dependencies;
  std::vector<bool> done;  // by op
};

/// `op` and the ops that it still waits for, in the recorded order; none if they are too many.
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

}  // namespace

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

}  // namespace tidepool
