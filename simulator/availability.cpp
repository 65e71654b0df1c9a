#include "simulator/availability.hpp"

#include <algorithm>

namespace tidepool {

Nanos Availability::take(Bytes offset, Bytes size) {
  if (ranges_.empty()) return {};
  const Bytes end = offset + size;
  Nanos latest{};
  auto range = ranges_.upper_bound(offset);
  if (range != ranges_.begin() && std::prev(range)->second.end > offset) --range;
  while (range != ranges_.end() && range->first < end) {
    const auto [first, old] = *range;
    latest = std::max(latest, old.time);
    range = ranges_.erase(range);
    if (first < offset) ranges_.emplace(first, Range{offset, old.time});
    if (old.end > end) range = ranges_.emplace(end, Range{old.end, old.time}).first;
  }
  return latest;
}

void Availability::release(Bytes offset, Bytes size, Nanos time) {
  take(offset, size);
  ranges_.emplace(offset, Range{offset + size, time});
}

void Availability::forget_before(Nanos time) {
  if (ranges_.size() < swept_size_) return;
  std::erase_if(ranges_, [time](const auto& range) { return range.second.time <= time; });
  swept_size_ = std::max<std::size_t>(64, 2 * ranges_.size());
}

}  // namespace tidepool
