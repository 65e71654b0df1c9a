#include "simulator/swap/peak_selection.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "simulator/swap/priced_selection.hpp"
#include "simulator/swap/range_tree.hpp"
#include "simulator/swap/schedule.hpp"

namespace tidepool {
namespace {

/// What is picked of the gaps, and how far the load without it is above the limits.
class Cover {
 public:
  Cover(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<double>& prices,
        const SlotLimits& limits)
      : gaps_{gaps}, prices_{prices}, excess_{above(circle, limits)}, open_(gaps.size()) {
    std::iota(open_.begin(), open_.end(), 0u);
    std::stable_sort(open_.begin(), open_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return prices[a] < prices[b]; });
  }

  /// Picks until nothing is above the limits but where nothing helps. Whether there is no such slot.
  bool fill() {
    bool fits = true;
    while (excess_.most() > Bytes{}) {
      const std::size_t slot = peak_slot();
      const auto found = std::find_if(open_.begin(), open_.end(), [&](std::uint32_t i) { return lasts(i, slot); });
      if (found != open_.end()) {
        pick(*found);
      } else {
        fits = false;
        excess_.add(slot, slot + 1, -excess_.most(slot, slot + 1));
      }
    }
    return fits;
  }

  void trade() {
    std::vector<std::uint32_t> order = picked_;
    std::erase_if(order, [&](std::uint32_t i) { return !is_waited_for(i); });
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return cost(a) > cost(b); });
    for (const std::uint32_t i : order) {
      const std::size_t others = picked_.size() - 1;
      give_up(i);
      if (make_up_for(i)) continue;
      while (picked_.size() > others) give_up(picked_.back());
      pick(i);
    }
  }

  const std::vector<std::uint32_t>& picked() const { return picked_; }

 private:
  static std::vector<Bytes> above(const StepCircle& circle, const SlotLimits& limits) {
    std::vector<Bytes> above = circle.load;
    for (std::size_t k = 0; k < above.size(); ++k) above[k] -= limits[k];
    return above;
  }
  bool is_waited_for(std::uint32_t i) const { return prices_[i] >= kWaitedFor; }
  double cost(std::uint32_t i) const { return prices_[i] * static_cast<double>(gaps_[i].size.count()); }
  bool lasts(std::uint32_t i, std::size_t slot) const {
    return (gaps_[i].release < slot && slot < gaps_[i].due) || slot + excess_.size() < gaps_[i].due;
  }
  void add(std::uint32_t i, Bytes bytes) {
    for_each_range(excess_.size(), gaps_[i].release + std::size_t{1}, gaps_[i].due,
                   [&](std::size_t first, std::size_t last) { excess_.add(first, last, bytes); });
  }
  void pick(std::uint32_t i) {
    add(i, -gaps_[i].size);
    picked_.push_back(i);
    open_.erase(std::find(open_.begin(), open_.end(), i));
  }
  void give_up(std::uint32_t i) {
    add(i, gaps_[i].size);
    picked_.erase(std::find(picked_.rbegin(), picked_.rend(), i).base() - 1);
    const auto cheaper = [&](std::uint32_t a, std::uint32_t b) {
      return prices_[a] != prices_[b] ? prices_[a] < prices_[b] : a < b;
    };
    open_.insert(std::upper_bound(open_.begin(), open_.end(), i, cheaper), i);
  }

  /// Picks others in its place. Whether they are enough, and cost less.
  bool make_up_for(std::uint32_t given_up) {
    constexpr double kWorthwhile = 0.99;
    double most = kWorthwhile * cost(given_up);
    while (excess_.most() > Bytes{}) {
      const std::optional<std::uint32_t> other = filler(peak_slot(), excess_.most(), given_up);
      if (!other || (is_waited_for(*other) && (most -= cost(*other)) <= 0)) return false;
      pick(*other);
    }
    return true;
  }

  /// Of those that last there one that nobody waits for, or the largest of no more than these bytes, or the smallest.
  std::optional<std::uint32_t> filler(std::size_t slot, Bytes bytes, std::uint32_t without) const {
    const auto closer = [&](Bytes a, Bytes b) {
      return (a <= bytes) != (b <= bytes) ? a <= bytes : a <= bytes ? a > b : a < b;
    };
    std::optional<std::uint32_t> best;
    for (const std::uint32_t i : open_) {
      if (i == without || !lasts(i, slot)) continue;
      if (!is_waited_for(i)) return i;
      if (!best || closer(gaps_[i].size, gaps_[*best].size)) best = i;
    }
    return best;
  }

  /// The first with the most.
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
  std::vector<std::uint32_t> open_, picked_;  // cheapest first; in the order in which they were picked
};

}  // namespace

Selection select_for_peaks(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<double>& prices,
                           const SlotLimits& limits) {
  Cover cover{circle, gaps, prices, limits};
  Selection selection;
  selection.fits = cover.fill();
  cover.trade();
  selection.gaps = cover.picked();
  selection.peak = peak_without(circle, gaps, selection.gaps);
  return selection;
}

}  // namespace tidepool
