#include "simulator/solvers/packing/occupancy.hpp"

#include <algorithm>

namespace tidepool {
namespace {

/// Calls whole(node) for the nodes that make up the range and part(node) for those above them.
template <class Whole, class Part>
void for_nodes(SectionRange range, std::uint32_t leaves, int height, const Whole& whole, const Part& part) {
  const std::uint32_t low = range.first + leaves, high = range.last + leaves;
  for (std::uint32_t a = low, b = high; a < b; a >>= 1, b >>= 1) {
    if (a & 1) whole(a++);
    if (b & 1) whole(--b);
  }
  for (int k = 1; k <= height; ++k) {
    const std::uint32_t a = low >> k, b = (high - 1) >> k;
    const bool cuts_low = (a << k) != low, cuts_high = ((b + 1) << k) != high;
    if (cuts_low) part(a);
    if (cuts_high && !(cuts_low && a == b)) part(b);
  }
}

std::int64_t aligned(std::int64_t offset, std::int64_t alignment) {
  return alignment == 1 ? offset : (offset + alignment - 1) / alignment * alignment;
}

}  // namespace

Occupancy::Occupancy(std::uint32_t sections) {
  while (leaves_ < sections) {
    leaves_ *= 2;
    ++height_;
  }
  here_.resize(2 * std::size_t{leaves_});
  below_.resize(2 * std::size_t{leaves_});
}

void Occupancy::unite(Runs& runs, Run added) {
  if (runs.empty() || runs.back().last < added.first) {
    runs.push_back(added);
    return;
  }
  // The runs that touch the added one: [low, high).
  const auto low = std::lower_bound(runs.begin(), runs.end(), added.first,
                                    [](const Run& run, std::int64_t first) { return run.last < first; });
  auto high = low;
  while (high != runs.end() && high->first <= added.last) ++high;
  if (low == high) {
    runs.insert(low, added);
    return;
  }
  low->first = std::min(low->first, added.first);
  low->last = std::max(std::prev(high)->last, added.last);
  runs.erase(std::next(low), high);
}

void Occupancy::take(std::span<const SectionRange> ranges, std::int64_t offset, std::int64_t size) {
  const Run run{offset, offset + size};
  for (const SectionRange range : ranges)
    for_nodes(
        range, leaves_, height_,
        [&](std::uint32_t node) {
          unite(here_[node], run);
          unite(below_[node], run);
        },
        [&](std::uint32_t node) { unite(below_[node], run); });
}

void Occupancy::open(const Runs& runs, std::int64_t from) {
  const Run* const end = runs.data() + runs.size();
  const Run* first = runs.data();
  if (first != end && first->last <= from)
    first = std::upper_bound(first, end, from, [](std::int64_t value, const Run& run) { return value < run.last; });
  if (first != end) heap_.push_back({first, end});
}

void Occupancy::sift(std::size_t hole) {
  const Cursor moved = heap_[hole];
  for (std::size_t child; (child = 2 * hole + 1) < heap_.size(); hole = child) {
    if (child + 1 < heap_.size() && heap_[child + 1].next->first < heap_[child].next->first) ++child;
    if (moved.next->first <= heap_[child].next->first) break;
    heap_[hole] = heap_[child];
  }
  heap_[hole] = moved;
}

std::int64_t Occupancy::find(std::span<const SectionRange> ranges, std::int64_t size, std::int64_t alignment, Fit fit,
                             std::int64_t from) {
  heap_.clear();
  for (const SectionRange range : ranges)
    for_nodes(
        range, leaves_, height_, [&](std::uint32_t node) { open(below_[node], from); },
        [&](std::uint32_t node) { open(here_[node], from); });
  for (std::size_t i = heap_.size() / 2; i-- > 0;) sift(i);

  std::int64_t top = from;  // the end of the runs seen so far
  std::int64_t best = -1, best_room = 0;
  while (!heap_.empty()) {
    Cursor& lowest = heap_.front();
    const std::int64_t room = lowest.next->first - top;
    if (room >= size && (best < 0 || room < best_room))
      if (const std::int64_t offset = aligned(top, alignment); offset + size <= lowest.next->first) {
        if (fit == Fit::kFirst) return offset;
        best = offset;
        best_room = room;
      }
    top = std::max(top, lowest.next->last);
    do ++lowest.next;
    while (lowest.next != lowest.end && lowest.next->last <= top);
    if (lowest.next == lowest.end) {
      lowest = heap_.back();
      heap_.pop_back();
      if (heap_.empty()) break;
    }
    sift(0);
  }
  return best >= 0 ? best : aligned(top, alignment);
}

}  // namespace tidepool
