#include "simulator/engine/availability.hpp"

namespace tidepool {

Moment Availability::take(Bytes offset, Bytes size) {
  const Bytes end = offset + size;
  Moment last{};
  if (offset >= end) return last;
  while (const auto* const found = ranges_.find(offset, end)) {
    const auto old = *found;
    last = latest(last, old.value);
    ranges_.remove(old.first);
    --count_;
    add(old.first, std::min(old.end, offset), old.value);
    add(std::max(old.first, end), old.end, old.value);
  }
  return last;
}

void Availability::release(Bytes offset, Bytes size, const Moment& time) {
  take(offset, size);
  add(offset, offset + size, time);
}

void Availability::add(Bytes first, Bytes end, const Moment& time) {
  if (first >= end) return;
  ranges_.add(first, end, time);
  ++count_;
}

}  // namespace tidepool
