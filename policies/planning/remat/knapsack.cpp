#include "policies/planning/remat/knapsack.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

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
  std::vector<std::int64_t> best(kParts + 1);  // by p: the most worth that fits into p parts of the limit
  std::vector<std::vector<bool>> takes;        // by item, by p: whether the most worth takes the item
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
  const double giga = static_cast<double>(whole.count()) / 1e9;  // divides as the source does, so that roundings agree
  std::vector<std::size_t> parts;
  std::vector<std::vector<float>> best{std::vector<float>(room + 1)};  // by number of items, by p: most in p parts
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

namespace {

/// Dynamic programming over lists of states (Nemhauser and Ullmann, Management Science 1969), with the items in the
/// order of worth per byte. A state is dropped if another one dominates it, or if its bound (the rest of the room
/// filled with items, the last one in part) is no better than the best choice known.
class ExactKnapsack {
 public:
  ExactKnapsack(const std::vector<KnapsackItem>& items, Bytes limit) : items_{items}, limit_{limit.count()} {
    for (std::size_t i = 0; i < items.size(); ++i)
      if (items[i].size <= limit && items[i].worth > Nanos{}) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return Int128{items[a].worth.count()} * items[b].size.count() >
             Int128{items[b].worth.count()} * items[a].size.count();
    });
    sums_.resize(order_.size() + 1);
    for (std::size_t k = 0; k < order_.size(); ++k) sums_[k + 1] = {sums_[k].size + size(k), sums_[k].worth + worth(k)};
  }

  std::vector<bool> solve() {
    states_ = {{}};
    std::vector<std::uint32_t> front{0}, next;
    consider(0, 0);
    for (std::size_t k = 0; k < order_.size() && states_.size() < kMostStates; ++k) {
      next.clear();
      std::size_t without = 0, with = 0;
      while (without < front.size() || with < front.size()) {
        const Sum* left = without < front.size() ? &states_[front[without]].sum : nullptr;
        Sum right;
        if (with < front.size()) {
          right = states_[front[with]].sum;
          right = {right.size + size(k), right.worth + worth(k)};
        }
        if (left != nullptr && (with == front.size() || left->size < right.size ||
                                (left->size == right.size && left->worth >= right.worth))) {
          keep(front[without++], *left, k + 1, next);
        } else {
          const std::uint32_t from = front[with++];
          if (right.size > limit_) continue;
          if (!next.empty() && states_[next.back()].sum.worth >= right.worth) continue;
          states_.push_back({right, from, static_cast<std::uint32_t>(k)});
          consider(static_cast<std::uint32_t>(states_.size() - 1), k + 1);
          keep(static_cast<std::uint32_t>(states_.size() - 1), right, k + 1, next);
        }
      }
      front.swap(next);
    }
    return taken();
  }

 private:
  static constexpr std::size_t kMostStates = 4'000'000;  // 100 MB; far more than needed for a step

  struct Sum {
    std::int64_t size = 0, worth = 0;
  };
  struct State {
    Sum sum;
    std::uint32_t from = 0, item = 0;  // the state before the last item, and that item
  };

  std::int64_t size(std::size_t k) const { return items_[order_[k]].size.count(); }
  std::int64_t worth(std::size_t k) const { return items_[order_[k]].worth.count(); }

  /// The end of the longest range of items from `k` on for which a choice with this sum has room.
  std::size_t fill(const Sum& sum, std::size_t k) const {
    const std::int64_t room = limit_ - sum.size + sums_[k].size;
    const auto end = std::upper_bound(sums_.begin() + static_cast<std::ptrdiff_t>(k), sums_.end(), room,
                                      [](std::int64_t most, const Sum& each) { return most < each.size; });
    return static_cast<std::size_t>(end - sums_.begin()) - 1;
  }

  /// Considers a choice: a state, with as many of the next items from `k` on as fit.
  void consider(std::uint32_t state, std::size_t k) {
    const Sum& sum = states_[state].sum;
    const std::size_t end = fill(sum, k);
    const std::int64_t worth = sum.worth + sums_[end].worth - sums_[k].worth;
    if (worth > best_worth_) best_worth_ = worth, best_ = state, best_begin_ = k, best_end_ = end;
  }

  void keep(std::uint32_t state, const Sum& sum, std::size_t k, std::vector<std::uint32_t>& next) const {
    if (!next.empty() && states_[next.back()].sum.worth >= sum.worth) return;
    const std::size_t end = fill(sum, k);
    Int128 most = Int128{sum.worth} + sums_[end].worth - sums_[k].worth;
    if (end < order_.size())
      most += Int128{limit_ - sum.size - (sums_[end].size - sums_[k].size)} * worth(end) / size(end);
    if (most > best_worth_) next.push_back(state);
  }

  std::vector<bool> taken() const {
    std::vector<bool> taken(items_.size());
    for (std::size_t k = best_begin_; k < best_end_; ++k) taken[order_[k]] = true;
    for (std::uint32_t state = best_; state != 0; state = states_[state].from)
      taken[order_[states_[state].item]] = true;
    return taken;
  }

  const std::vector<KnapsackItem>& items_;
  std::int64_t limit_;
  std::vector<std::size_t> order_;
  std::vector<Sum> sums_;  // by k: of the first k items in the order
  std::vector<State> states_;
  std::int64_t best_worth_ = -1;
  std::uint32_t best_ = 0;
  std::size_t best_begin_ = 0, best_end_ = 0;
};

}  // namespace

std::vector<bool> knapsack_exactly(const std::vector<KnapsackItem>& items, Bytes limit) {
  return limit < Bytes{} ? std::vector<bool>(items.size()) : ExactKnapsack{items, limit}.solve();
}

}  // namespace tidepool
