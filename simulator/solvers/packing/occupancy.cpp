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

void Occupancy::unite(Runs& chunks, Run added) {
  constexpr std::size_t kMost = 256;  // runs of a chunk
  if (chunks.empty()) {
    chunks.push_back({.runs = {added}});
    return;
  }
  const auto touched =
      std::lower_bound(chunks.begin(), chunks.end(), added.first,
                       [](const Chunk& chunk, std::int64_t first) { return chunk.runs.back().last < first; });
  const auto chunk = touched == chunks.end() ? std::prev(chunks.end()) : touched;
  std::vector<Run>& runs = chunk->runs;
  chunk->hole = kUnknown;
  const auto low = std::lower_bound(runs.begin(), runs.end(), added.first,
                                    [](const Run& run, std::int64_t first) { return run.last < first; });
  if (low == runs.end() || added.last < low->first) {
    runs.insert(low, added);
    if (runs.size() <= kMost) return;
    const auto half = runs.begin() + kMost / 2;
    Chunk upper{.runs = {half, runs.end()}};
    runs.erase(half, runs.end());
    chunks.insert(std::next(chunk), std::move(upper));
    return;
  }
  // The added run touches the runs from `low` on that begin before it ends, in this chunk and in those above.
  Run& united = *low;
  united.first = std::min(united.first, added.first);
  const auto above = [&](const Run& run) { return added.last < run.first; };
  const auto high = std::find_if(std::next(low), runs.end(), above);
  united.last = std::max(std::prev(high)->last, added.last);
  const bool whole = high == runs.end();
  runs.erase(std::next(low), high);
  if (!whole) return;
  auto next = std::next(chunk);
  while (next != chunks.end() && next->runs.front().first <= added.last) {
    const auto behind = std::find_if(next->runs.begin(), next->runs.end(), above);
    united.last = std::max(united.last, std::prev(behind)->last);
    next->hole = kUnknown;
    if (behind != next->runs.end()) {
      next->runs.erase(next->runs.begin(), behind);
      break;
    }
    ++next;
  }
  chunks.erase(std::next(chunk), next);
}

std::int64_t Occupancy::hole_in(Chunk& chunk) {
  if (chunk.hole != kUnknown) return chunk.hole;
  chunk.hole = 0;
  for (std::size_t i = 1; i < chunk.runs.size(); ++i)
    chunk.hole = std::max(chunk.hole, chunk.runs[i].first - chunk.runs[i - 1].last);
  return chunk.hole;
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

void Occupancy::open(Runs& chunks, std::int64_t from) {
  const auto ends_before = [](std::int64_t value, const auto& run) { return value < run.last; };
  const auto chunk = std::upper_bound(chunks.begin(), chunks.end(), from, [](std::int64_t value, const Chunk& each) {
    return value < each.runs.back().last;
  });
  if (chunk == chunks.end()) return;
  const Run *first = chunk->runs.data(), *const end = first + chunk->runs.size();
  if (first->last <= from) first = std::upper_bound(first, end, from, ends_before);
  heap_.push_back({first, end, &*chunk, &chunks.back()});
}

/// Goes on to the next run with a hole of `size` bytes before it, above `top`. What is below it counts as taken: a
/// smaller hole of one list is no hole of the size in all lists. @return  whether there is such a run
bool Occupancy::advance(Cursor& cursor, std::int64_t& top, std::int64_t size) {
  for (++cursor.next;; ++cursor.next) {
    if (cursor.next == cursor.end) {
      for (;;) {
        if (cursor.chunk == cursor.last) return false;
        ++cursor.chunk;
        const std::vector<Run>& runs = cursor.chunk->runs;
        if (runs.back().last <= top) continue;
        if (runs.front().first - top >= size || hole_in(*cursor.chunk) >= size) break;
        top = std::max(top, runs.back().last);
      }
      cursor.next = cursor.chunk->runs.data(), cursor.end = cursor.next + cursor.chunk->runs.size();
    }
    if (cursor.next->first - top >= size) return true;
    top = std::max(top, cursor.next->last);
  }
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
    if (!advance(lowest, top, size)) {
      lowest = heap_.back();
      heap_.pop_back();
      if (heap_.empty()) break;
    }
    sift(0);
  }
  return best >= 0 ? best : aligned(top, alignment);
}

}  // namespace tidepool
