#include "policies/swap/g10/bandwidth_ledger.hpp"

#include <algorithm>

namespace tidepool {

BandwidthLedger::BandwidthLedger(const StepCircle& circle, BytesPerSecond rate) {
  before_.reserve(circle.size() + 1);
  for (const Nanos start : circle.start)
    before_.emplace_back(static_cast<std::int64_t>(static_cast<Int128>(rate.count()) * start.count() / 1'000'000'000));
}

std::size_t BandwidthLedger::ends(std::size_t from, Bytes size) const {
  const auto first = before_.begin() + static_cast<std::ptrdiff_t>(from) + 1;
  const auto end = std::lower_bound(first, before_.end(), before_[from] + size);
  return std::min(static_cast<std::size_t>(end - before_.begin()), before_.size() - 1) - 1;
}

std::size_t BandwidthLedger::begins(std::size_t before, Bytes size) const {
  const auto last = before_.begin() + static_cast<std::ptrdiff_t>(before);
  const auto begin = std::upper_bound(before_.begin(), last, before_[before] - size);
  return begin == before_.begin() ? 0 : static_cast<std::size_t>(begin - before_.begin()) - 1;
}

void BandwidthLedger::reserve(std::size_t from, Bytes size) {
  Bytes taken;
  Bytes earlier = before_[from];
  for (std::size_t k = from; k + 1 < before_.size(); ++k) {
    const Bytes here = before_[k + 1] - earlier;
    earlier = before_[k + 1];
    taken += std::min(here, size - taken);
    before_[k + 1] -= taken;
  }
}

}  // namespace tidepool
