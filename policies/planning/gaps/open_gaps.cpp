#include "policies/planning/gaps/open_gaps.hpp"

#include <algorithm>

#include "policies/planning/gaps/range_tree.hpp"

namespace tidepool {

OpenGaps::OpenGaps(const std::vector<Gap>& gaps, const std::vector<std::uint32_t>& order, std::size_t slots)
    : gaps_{gaps}, order_{order}, slots_{slots}, closed_(order.size()) {
  while (width_ < slots_) width_ *= 2;
  std::vector<std::size_t> count(2 * width_ + 1);
  for (const std::uint32_t gap : order) for_each_node(gaps[gap], [&](std::size_t node) { ++count[node + 1]; });
  for (std::size_t node = 0; node < 2 * width_; ++node) count[node + 1] += count[node];
  begin_.assign(count.begin(), count.end() - 1);
  head_ = end_ = begin_;
  ranks_.resize(count.back());
  for (std::uint32_t rank = 0; rank < order.size(); ++rank)
    for_each_node(gaps[order[rank]], [&](std::size_t node) { ranks_[end_[node]++] = rank; });
}

template <class Visit>
void OpenGaps::for_each_node(const Gap& gap, Visit visit) const {
  for_each_range(slots_, gap.release + std::size_t{1}, gap.due, [&](std::size_t first, std::size_t last) {
    for (first += width_, last += width_; first < last; first /= 2, last /= 2) {
      if (first % 2 == 1) visit(first++);
      if (last % 2 == 1) visit(--last);
    }
  });
}

void OpenGaps::open_again(std::uint32_t rank) {
  closed_[rank] = false;
  for_each_node(gaps_[order_[rank]], [&](std::size_t node) {
    const auto at = [&](std::size_t i) { return ranks_.begin() + static_cast<std::ptrdiff_t>(i); };
    const auto found = std::lower_bound(at(begin_[node]), at(end_[node]), rank);
    head_[node] = std::min(head_[node], static_cast<std::size_t>(found - ranks_.begin()));
  });
}

std::optional<std::uint32_t> OpenGaps::first_in(std::size_t slot) {
  std::optional<std::uint32_t> first;
  for (std::size_t node = slot + width_; node > 0; node /= 2) {
    std::size_t& head = head_[node];
    while (head < end_[node] && closed_[ranks_[head]]) ++head;
    if (head < end_[node] && (!first || ranks_[head] < *first)) first = ranks_[head];
  }
  return first;
}

}  // namespace tidepool
