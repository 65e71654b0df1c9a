#include "simulator/swap/load_curve.hpp"

#include <algorithm>
#include <utility>

namespace tidepool {

LoadCurve::LoadCurve(const StepCircle& circle, std::vector<Bytes> limit)
    : circle_{circle},
      limit_{std::move(limit)},
      load_{circle.load},
      over_(circle.size() + 1),
      area_(circle.size() + 1),
      excess_(circle.size() + 1) {
  add_up();
}

void LoadCurve::take(const Gap& gap) {
  for (std::uint32_t p = gap.release + 1; p < gap.due; ++p) load_[p % load_.size()] -= gap.size;
  add_up();
}

Bytes LoadCurve::peak() const { return load_.empty() ? Bytes{} : *std::max_element(load_.begin(), load_.end()); }

double LoadCurve::sum(const std::vector<double>& prefix, const Gap& gap) const {
  const std::size_t first = gap.release + std::size_t{1}, last = gap.due, n = load_.size();
  if (last <= n) return prefix[last] - prefix[first];
  if (first >= n) return prefix[last - n] - prefix[first - n];
  return prefix[n] - prefix[first] + prefix[last - n];
}

void LoadCurve::add_up() {
  for (std::size_t k = 0; k < load_.size(); ++k) {
    const auto bytes = static_cast<double>(load_[k].count());
    const auto excess = static_cast<double>(std::max(load_[k] - limit_[k], Bytes{}).count());
    const auto time = static_cast<double>((circle_.start[k + 1] - circle_.start[k]).count());
    over_[k + 1] = over_[k] + (excess > 0 ? 1.0 : 0.0);
    area_[k + 1] = area_[k] + bytes * time;
    excess_[k + 1] = excess_[k] + excess * time;
  }
}

}  // namespace tidepool
