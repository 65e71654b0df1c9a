#include "tracer/cupti/live_ranges.hpp"

#include <algorithm>
#include <limits>

namespace tidepool::cupti {
namespace {

std::uint64_t end_of(std::uint64_t begin, std::uint64_t bytes) {
  return bytes > std::numeric_limits<std::uint64_t>::max() - begin ? std::numeric_limits<std::uint64_t>::max()
                                                                   : begin + bytes;
}

}  // namespace

std::size_t LiveRanges::first_ending_after(std::uint64_t address) const {
  return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), address) - ends_.begin());
}

std::size_t LiveRanges::erase(std::size_t first, std::uint64_t end) {
  std::size_t last = first;
  while (last < ranges_.size() && ranges_[last].begin < end) ++last;
  const auto from = static_cast<std::ptrdiff_t>(first), to = static_cast<std::ptrdiff_t>(last);
  ranges_.erase(ranges_.begin() + from, ranges_.begin() + to);
  ends_.erase(ends_.begin() + from, ends_.begin() + to);
  return last - first;
}

std::size_t LiveRanges::add(std::uint64_t begin, std::uint64_t bytes, bool before_trace) {
  if (bytes == 0) return 0;
  const std::uint64_t end = end_of(begin, bytes);
  const std::size_t at = first_ending_after(begin);
  const std::size_t gone = erase(at, end);
  ranges_.insert(ranges_.begin() + static_cast<std::ptrdiff_t>(at), {begin, end, before_trace});
  ends_.insert(ends_.begin() + static_cast<std::ptrdiff_t>(at), end);
  return gone;
}

std::optional<LiveRange> LiveRanges::remove(std::uint64_t begin) {
  const std::size_t at = first_ending_after(begin);
  if (at == ranges_.size() || ranges_[at].begin != begin) return std::nullopt;
  const LiveRange range = ranges_[at];
  erase(at, range.end);
  return range;
}

std::size_t LiveRanges::remove_within(std::uint64_t begin, std::uint64_t bytes) {
  std::size_t first = first_ending_after(begin);
  if (first < ranges_.size() && ranges_[first].begin < begin) ++first;
  const std::uint64_t end = end_of(begin, bytes);
  std::size_t last = first;
  while (last < ranges_.size() && ranges_[last].end <= end) ++last;
  return first == last ? 0 : erase(first, ranges_[last - 1].end);
}

const LiveRange* LiveRanges::find(std::uint64_t address) const {
  const std::size_t at = first_ending_after(address);
  return at < ranges_.size() && ranges_[at].begin <= address ? &ranges_[at] : nullptr;
}

}  // namespace tidepool::cupti
