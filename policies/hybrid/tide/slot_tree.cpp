#include "policies/hybrid/tide/slot_tree.hpp"

#include <algorithm>
#include <limits>

namespace tidepool {

void SlotTree::reset(std::span<const Bytes> load) {
  constexpr Bytes kLeast{std::numeric_limits<std::int64_t>::min() / 4};
  slots_ = load.size();
  leaves_ = 1;
  while (leaves_ < slots_) leaves_ *= 2;
  nodes_.assign(2 * leaves_, {kLeast, Bytes{}});
  for (std::size_t k = 0; k < slots_; ++k) nodes_[leaves_ + k].most = load[k];
  for (std::size_t i = leaves_ - 1; i > 0; --i) nodes_[i].most = std::max(nodes_[2 * i].most, nodes_[2 * i + 1].most);
}

void SlotTree::add(std::int64_t first, std::int64_t count, Bytes bytes) {
  if (count <= 0) return;
  const auto slots = static_cast<std::int64_t>(slots_);
  if (count >= slots) return add(1, 0, leaves_, 0, slots_, bytes);
  const auto begin = static_cast<std::size_t>(first % slots), end = begin + static_cast<std::size_t>(count);
  add(1, 0, leaves_, begin, std::min(end, slots_), bytes);
  if (end > slots_) add(1, 0, leaves_, 0, end - slots_, bytes);
}

void SlotTree::add(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
                   Bytes bytes) {
  if (first <= begin && end <= last) {
    nodes_[node].most += bytes;
    nodes_[node].added += bytes;
    return;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  if (first < middle) add(2 * node, begin, middle, first, last, bytes);
  if (last > middle) add(2 * node + 1, middle, end, first, last, bytes);
  nodes_[node].most = std::max(nodes_[2 * node].most, nodes_[2 * node + 1].most) + nodes_[node].added;
}

std::int64_t SlotTree::last_above(std::int64_t first, std::int64_t last, Bytes limit) const {
  if (first >= last) return first - 1;
  const auto slots = static_cast<std::int64_t>(slots_);
  for (std::int64_t turn = (last - 1) / slots * slots; turn + slots > first; turn -= slots) {
    const auto begin = static_cast<std::size_t>(std::max(first - turn, std::int64_t{0})),
               end = static_cast<std::size_t>(std::min(last - turn, slots));
    const std::int64_t found = last_above(1, 0, leaves_, begin, end, limit);
    if (found >= 0) return turn + found;
  }
  return first - 1;
}

std::int64_t SlotTree::last_above(std::size_t node, std::size_t begin, std::size_t end, std::size_t first,
                                  std::size_t last, Bytes limit) const {
  if (end <= first || last <= begin || nodes_[node].most <= limit) return -1;
  if (node >= leaves_) return static_cast<std::int64_t>(begin);
  const std::size_t middle = begin + (end - begin) / 2;
  limit -= nodes_[node].added;
  const std::int64_t right = last_above(2 * node + 1, middle, end, first, last, limit);
  return right >= 0 ? right : last_above(2 * node, begin, middle, first, last, limit);
}

}  // namespace tidepool
