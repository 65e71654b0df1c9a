#include "simulator/engine/availability.hpp"

#include <iterator>

namespace tidepool {

Moment Availability::take(Bytes offset, Bytes size) {
  if (ranges_.empty()) return {};
  const Bytes end = offset + size;
  Moment last{};
  auto range = ranges_.upper_bound(offset);
  if (range != ranges_.begin() && std::prev(range)->second.end > offset) --range;
  while (range != ranges_.end() && range->first < end) {
    const auto [first, old] = *range;
    last = latest(last, old.time);
    range = ranges_.erase(range);
    if (first < offset) ranges_.emplace(first, Range{offset, old.time});
    if (old.end > end) range = ranges_.emplace(end, Range{old.end, old.time}).first;
  }
  return last;
}

void Availability::release(Bytes offset, Bytes size, const Moment& time) {
  take(offset, size);
  ranges_.emplace(offset, Range{offset + size, time});
}

}  // namespace tidepool
