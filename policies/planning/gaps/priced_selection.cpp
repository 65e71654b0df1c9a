#include "policies/planning/gaps/priced_selection.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace tidepool {
namespace {

/// The gaps across the boundary between iterations whose content may begin the step on the host: their swap-ins end in
/// time if the lane serves only these, in the order of their due ops.
class Beginnings {
 public:
  Beginnings(const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine) {
    const auto n = static_cast<std::uint32_t>(circle.size());
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < gaps.size(); ++i)
      if (gaps[i].crosses) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return gaps[a].due % n < gaps[b].due % n; });
    Nanos lane;
    for (const std::uint32_t i : order) {
      const Nanos end = lane + machine.h2d.time(gaps[i].size);
      if (end <= circle.at(gaps[i].due % n)) of_[gaps[i].in] = i, lane = end;
    }
  }
  /// The one of these gaps that brings the content of `gap` into the step. None if there is no such gap, if an op of
  /// the step makes that content or none ever changes it, or if the gap has a `renewed` version.
  std::optional<std::uint32_t> of(const Gap& gap) const {
    const auto found = of_.find(gap.out);
    return gap.made != Gap::kBefore || gap.renewed.valid() || found == of_.end() ? std::nullopt
                                                                                 : std::optional{found->second};
  }

 private:
  std::map<VersionId, std::uint32_t> of_;
};

}  // namespace

std::vector<double> copy_prices(const RealisedStep& step, const std::vector<Gap>& gaps, const Machine& machine,
                                AmongLike like) {
  const StepCircle& circle = step.circle;
  const std::size_t n = circle.size();
  const Beginnings beginnings{step.circle, gaps, machine};
  constexpr double kLeast = 1e-3;  // the largest price of a copy without waits
  const auto period = static_cast<double>(std::max<std::int64_t>(circle.period().count(), 1));
  std::vector<double> prices;
  for (const Gap& gap : gaps) {
    const auto exposed_from = [&](std::size_t op) { return op < n && step.exposed_out[op] ? kWaitedFor : 0.0; };
    double price = step.exposed_in[gap.due % n] ? kWaitedFor : 0.0;
    if (gap.renewed.valid())
      price += exposed_from(gap.renewed_by + std::size_t{1});
    else if (gap.made != Gap::kUnchanged && !beginnings.of(gap))
      price += exposed_from(gap.release + std::size_t{1});
    const Nanos after = like == AmongLike::kLongest ? circle.period() + released(circle, gap) - circle.at(gap.due)
                                                    : released(circle, gap);
    prices.push_back(price + kLeast * static_cast<double>(after.count()) / period);
  }
  return prices;
}

std::vector<std::uint32_t> with_begun_on_host(const RealisedStep& step, const std::vector<Gap>& gaps,
                                              const Machine& machine, std::vector<std::uint32_t> selected) {
  const std::size_t n = step.circle.size();
  const Beginnings beginnings{step.circle, gaps, machine};
  std::vector<bool> used(gaps.size());
  for (const std::uint32_t i : selected) used[i] = true;
  for (std::size_t k = 0, count = selected.size(); k < count; ++k) {
    const Gap& gap = gaps[selected[k]];
    const std::optional<std::uint32_t> begun = beginnings.of(gap);
    if (!begun || used[*begun] || gap.release + 1 >= n || !step.exposed_out[gap.release + 1]) continue;
    used[*begun] = true;
    selected.push_back(*begun);
  }
  return selected;
}

}  // namespace tidepool
