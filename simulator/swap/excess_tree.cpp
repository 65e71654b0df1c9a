#include "simulator/swap/excess_tree.hpp"

#include <algorithm>
#include <bit>

namespace tidepool {

ExcessTree::ExcessTree(const StepCircle& circle, const std::vector<Bytes>& limits)
    : slots_{limits.size()}, nodes_(2 * std::bit_ceil(std::max<std::size_t>(limits.size(), 1))) {
  for (std::size_t k = 0; k < slots_; ++k) {
    const Bytes above = circle.load[k] - limits[k];
    if (above <= Bytes{}) continue;
    const auto time = static_cast<double>((circle.start[k + 1] - circle.start[k]).count());
    nodes_[nodes_.size() / 2 + k] = {static_cast<double>(above.count()) * time, time, above, {}, 1};
  }
  for (std::size_t node = nodes_.size() / 2; node-- > 1;) sum_up(node);
}

void ExcessTree::sum_up(std::size_t node) {
  const Node &left = nodes_[2 * node], &right = nodes_[2 * node + 1];
  const Bytes least = left.slots == 0 ? right.least : right.slots == 0 ? left.least : std::min(left.least, right.least);
  nodes_[node] = {left.area + right.area, left.time + right.time, least, {}, left.slots + right.slots};
}

void ExcessTree::take_off(Node& node, Bytes bytes) {
  node.area -= static_cast<double>(bytes.count()) * node.time;
  node.least -= bytes;
  node.taken += bytes;
}

void ExcessTree::take(const Place& at, std::size_t first, std::size_t last, Bytes bytes) {
  Node& node = nodes_[at.node];
  if (node.slots == 0 || at.apart(first, last)) return;
  if (at.within(first, last) && node.least > bytes) return take_off(node, bytes);
  if (at.end - at.begin == 1) {
    node = {};
    return;
  }
  for (const std::size_t child : {2 * at.node, 2 * at.node + 1})
    if (nodes_[child].slots > 0) take_off(nodes_[child], node.taken);
  take(at.left(), first, last, bytes);
  take(at.right(), first, last, bytes);
  sum_up(at.node);
}

bool ExcessTree::any(const Place& at, std::size_t first, std::size_t last) const {
  if (nodes_[at.node].slots == 0 || at.apart(first, last)) return false;
  return at.within(first, last) || any(at.left(), first, last) || any(at.right(), first, last);
}

double ExcessTree::area(const Place& at, std::size_t first, std::size_t last, Bytes taken) const {
  const Node& node = nodes_[at.node];
  if (node.slots == 0 || at.apart(first, last)) return 0;
  if (at.within(first, last)) return node.area - static_cast<double>(taken.count()) * node.time;
  return area(at.left(), first, last, taken + node.taken) + area(at.right(), first, last, taken + node.taken);
}

void ExcessTree::take(const Gap& gap) {
  for_each_range(slots_, gap.release + std::size_t{1}, gap.due,
                 [&](std::size_t first, std::size_t last) { take(all(), first, last, gap.size); });
}

bool ExcessTree::relieves(const Gap& gap) const {
  bool above = false;
  for_each_range(slots_, gap.release + std::size_t{1}, gap.due,
                 [&](std::size_t first, std::size_t last) { above |= any(all(), first, last); });
  return above;
}

double ExcessTree::excess(const Gap& gap) const {
  double sum = 0;
  for_each_range(slots_, gap.release + std::size_t{1}, gap.due,
                 [&](std::size_t first, std::size_t last) { sum += area(all(), first, last, {}); });
  return sum;
}

}  // namespace tidepool
