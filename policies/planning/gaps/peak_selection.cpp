#include "policies/planning/gaps/peak_selection.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "policies/planning/gaps/open_gaps.hpp"
#include "policies/planning/gaps/priced_selection.hpp"
#include "policies/planning/gaps/range_tree.hpp"
#include "policies/planning/gaps/schedule.hpp"

namespace tidepool {
namespace {

/// The picked gaps, and the excess of the load without them over the limits. Gaps are identified by their price rank.
class Cover {
 public:
  Cover(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<double>& prices,
        const SlotLimits& limits)
      : gaps_{gaps},
        prices_{prices},
        excess_{above(circle, limits)},
        order_{by_price(prices)},
        open_{gaps, order_, circle.size()} {}

  /// Picks gaps until no gap relieves a slot above its limit. @return  whether all slots are then within their limits
  bool fill() {
    bool fits = true;
    while (excess_.most() > Bytes{}) {
      const std::size_t slot = peak_slot();
      if (const std::optional<std::uint32_t> first = open_.first_in(slot)) {
        pick(*first);
      } else {
        fits = false;
        excess_.add(slot, slot + 1, -excess_.most(slot, slot + 1));
      }
    }
    return fits;
  }

  /// Replaces picks for which ops wait, the dearest first, by other gaps if these are enough and cost less.
  void give_up_dear() {
    std::vector<std::uint32_t> dear = picked_;
    std::erase_if(dear, [&](std::uint32_t rank) { return !is_waited_for(rank); });
    std::stable_sort(dear.begin(), dear.end(), [&](std::uint32_t a, std::uint32_t b) { return cost(a) > cost(b); });
    for (const std::uint32_t rank : dear) {
      if (looks_ <= 0) return;
      take_back(rank);
      const std::size_t others = picked_.size();
      if (make_up_for(rank)) {
        open_.open_again(rank);
        continue;
      }
      while (picked_.size() > others) {
        const std::uint32_t other = picked_.back();
        take_back(other);
        open_.open_again(other);
      }
      pick(rank);
    }
  }

  std::vector<std::uint32_t> picked() const {
    std::vector<std::uint32_t> gaps;
    for (const std::uint32_t rank : picked_) gaps.push_back(order_[rank]);
    return gaps;
  }

 private:
  static std::vector<Bytes> above(const StepCircle& circle, const SlotLimits& limits) {
    std::vector<Bytes> above = circle.load;
    for (std::size_t k = 0; k < above.size(); ++k) above[k] -= limits[k];
    return above;
  }
  static std::vector<std::uint32_t> by_price(const std::vector<double>& prices) {
    std::vector<std::uint32_t> order(prices.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return prices[a] < prices[b]; });
    return order;
  }
  Bytes size(std::uint32_t rank) const { return gaps_[order_[rank]].size; }
  double price(std::uint32_t rank) const { return prices_[order_[rank]]; }
  bool is_waited_for(std::uint32_t rank) const { return price(rank) >= kWaitedFor; }
  double cost(std::uint32_t rank) const { return price(rank) * static_cast<double>(size(rank).count()); }
  void add(std::uint32_t rank, Bytes bytes) {
    const Gap& gap = gaps_[order_[rank]];
    for_each_range(excess_.size(), gap.release + std::size_t{1}, gap.due,
                   [&](std::size_t first, std::size_t last) { excess_.add(first, last, bytes); });
  }
  void pick(std::uint32_t rank) {
    add(rank, -size(rank));
    picked_.push_back(rank);
    open_.close(rank);
  }
  /// Removes a pick without opening it again.
  void take_back(std::uint32_t rank) {
    add(rank, size(rank));
    picked_.erase(std::find(picked_.rbegin(), picked_.rend(), rank).base() - 1);
  }

  /// Picks other gaps in the place of `given_up`.
  /// @return  whether they are enough, and those for which ops wait cost at least 1 % less in all
  bool make_up_for(std::uint32_t given_up) {
    constexpr double kWorthwhile = 0.99;
    double most = kWorthwhile * cost(given_up);
    while (excess_.most() > Bytes{}) {
      const std::optional<std::uint32_t> other = filler(peak_slot(), excess_.most());
      if (!other || (is_waited_for(*other) && (most -= cost(*other)) <= 0)) return false;
      pick(*other);
    }
    return true;
  }

  /// The gap to pick for a slot: one without waits; else the largest with at most these bytes; else the smallest.
  std::optional<std::uint32_t> filler(std::size_t slot, Bytes bytes) {
    std::optional<std::uint32_t> best = open_.first_in(slot);
    if (!best || !is_waited_for(*best)) return best;
    const auto closer = [&](Bytes a, Bytes b) {
      return (a <= bytes) != (b <= bytes) ? a <= bytes : a <= bytes ? a > b : a < b;
    };
    open_.for_each_in(slot, [&](std::uint32_t rank) {
      --looks_;
      const Bytes a = size(rank), b = size(*best);
      if (a == b ? rank < *best : closer(a, b)) best = rank;
    });
    return best;
  }

  /// The first of the slots with the largest excess.
  std::size_t peak_slot() const {
    std::size_t first = 0;
    for (std::size_t last = excess_.size(); first + 1 < last;) {
      const std::size_t middle = first + (last - first) / 2;
      excess_.most(first, middle) >= excess_.most(middle, last) ? last = middle : first = middle;
    }
    return first;
  }

  const std::vector<Gap>& gaps_;
  const std::vector<double>& prices_;
  RangeTree excess_;
  std::vector<std::uint32_t> order_, picked_;  // gaps, cheapest first; ranks, in the order of picks
  OpenGaps open_;
  std::int64_t looks_ = 3'000'000;  // limit on comparisons of replacement gaps: takes milliseconds
};

}  // namespace

Selection select_for_peaks(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<double>& prices,
                           const SlotLimits& limits) {
  Cover cover{circle, gaps, prices, limits};
  Selection selection;
  selection.fits = cover.fill();
  cover.give_up_dear();
  selection.gaps = cover.picked();
  selection.peak = peak_without(circle, gaps, selection.gaps);
  return selection;
}

}  // namespace tidepool
