#include "policies/hybrid/tide/priced_choice.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "policies/planning/gaps/excess_tree.hpp"

namespace tidepool {

Treatments choose_by_price(const StepModel& model, const Machine& machine, const std::vector<Nanos>& recompute,
                           double price, const SlotLimits& limits, Treatments start) {
  struct Entry {
    double worth;
    std::uint32_t gap;
    std::size_t choices;
    bool operator<(const Entry& other) const { return worth != other.worth ? worth < other.worth : gap > other.gap; }
  };
  ExcessTree curve{model.circle, limits, ExcessTree::Asked::kHowMuch};
  for (std::size_t i = 0; i < start.size(); ++i)
    if (start[i] != How::kKept) curve.take(model.gaps[i]);
  std::vector<double> cost;
  std::vector<How> cheaper;
  std::vector<Entry> entries;
  for (std::uint32_t i = 0; i < model.gaps.size(); ++i) {
    const Gap& gap = model.gaps[i];
    const Nanos late = std::max(Nanos{}, -spare_time(model.circle, gap, machine));
    const double copied = price * static_cast<double>(gap.size.count()) + static_cast<double>(late.count());
    const auto dropped = static_cast<double>(recompute[i].count());
    const bool copies = recompute[i] == StepModel::kImpossible || copied <= dropped;
    cheaper.push_back(copies ? How::kCopied : How::kDropped);
    cost.push_back(std::max(1.0, copies ? copied : dropped));
    if (start[i] == How::kKept) entries.push_back({curve.excess(gap) / cost[i], i, 0});
  }
  std::priority_queue<Entry> queue{{}, std::move(entries)};
  std::size_t choices = 0;
  while (!queue.empty() && !curve.fits()) {
    const Entry best = queue.top();
    queue.pop();
    if (!curve.relieves(model.gaps[best.gap])) continue;  // later choices cannot change this
    if (best.choices + best.choices / 16 < choices) {     // its worth was computed too many choices ago
      queue.push({curve.excess(model.gaps[best.gap]) / cost[best.gap], best.gap, choices});
      continue;
    }
    start[best.gap] = cheaper[best.gap];
    curve.take(model.gaps[best.gap]);
    ++choices;
  }
  return start;
}

std::vector<double> possible_prices(const StepModel& model, std::size_t most) {
  std::vector<double> all;
  for (std::size_t i = 0; i < model.gaps.size(); ++i)
    if (model.can_drop(i))
      all.push_back(static_cast<double>(model.recompute[i].count() + 1) /
                    static_cast<double>(model.gaps[i].size.count()));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<double> prices{0};
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i)
    prices.push_back(1.0001 * all[all.size() <= most ? i : i * (all.size() - 1) / (most - 1)]);
  return prices;
}

}  // namespace tidepool
