#include "policies/planning/gaps/excess_tree.hpp"

#include <algorithm>
#include <bit>

namespace tidepool {

ExcessTree::ExcessTree(const StepCircle& circle, const std::vector<Bytes>& limits, Asked asked) {
  leaf_.reserve(limits.size() + 1);
  leaf_.push_back(0);
  for (std::size_t k = 0; k < limits.size(); ++k) leaf_.push_back(leaf_[k] + (circle.load[k] > limits[k] ? 1 : 0));
  const std::size_t width = std::bit_ceil(std::max<std::size_t>(leaf_.back(), 1));
  nodes_.resize(2 * width);
  if (asked == Asked::kHowMuch) areas_.resize(2 * width);
  for (std::size_t k = 0; k < limits.size(); ++k) {
    if (leaf_[k] == leaf_[k + 1]) continue;
    const std::size_t node = width + leaf_[k];
    nodes_[node].least = circle.load[k] - limits[k];
    if (areas_.empty()) continue;
    const auto time = static_cast<double>((circle.start[k + 1] - circle.start[k]).count());
    areas_[node] = {static_cast<double>(nodes_[node].least.count()) * time, time};
  }
  for (std::size_t node = width; node-- > 1;) sum_up(node);
}

template <class Visit>
void ExcessTree::for_each_run_of_leaves(const Gap& gap, Visit visit) const {
  for_each_range(leaf_.size() - 1, gap.release + std::size_t{1}, gap.due, [&](std::size_t first, std::size_t last) {
    if (leaf_[first] < leaf_[last]) visit(leaf_[first], leaf_[last]);
  });
}

void ExcessTree::sum_up(std::size_t node) {
  nodes_[node] = {std::min(nodes_[2 * node].least, nodes_[2 * node + 1].least), {}};
  if (areas_.empty()) return;
  const Area &left = areas_[2 * node], &right = areas_[2 * node + 1];
  areas_[node] = {left.bytes_ns + right.bytes_ns, left.ns + right.ns};
}

void ExcessTree::take_off(std::size_t node, Bytes bytes) {
  nodes_[node].least -= bytes;
  nodes_[node].taken += bytes;
  if (!areas_.empty()) areas_[node].bytes_ns -= static_cast<double>(bytes.count()) * areas_[node].ns;
}

void ExcessTree::take(const Place& at, std::size_t first, std::size_t last, Bytes bytes) {
  const Node& node = nodes_[at.node];
  if (!node.any() || at.apart(first, last)) return;
  if (at.within(first, last) && node.least > bytes) return take_off(at.node, bytes);
  if (at.end - at.begin == 1) {
    nodes_[at.node] = {};
    if (!areas_.empty()) areas_[at.node] = {};
    return;
  }
  for (const std::size_t child : {2 * at.node, 2 * at.node + 1})
    if (nodes_[child].any() && node.taken > Bytes{}) take_off(child, node.taken);
  take(at.left(), first, last, bytes);
  take(at.right(), first, last, bytes);
  sum_up(at.node);
}

bool ExcessTree::any(const Place& at, std::size_t first, std::size_t last) const {
  if (!nodes_[at.node].any() || at.apart(first, last)) return false;
  return at.within(first, last) || any(at.left(), first, last) || any(at.right(), first, last);
}

double ExcessTree::area(const Place& at, std::size_t first, std::size_t last, Bytes taken) const {
  const Node& node = nodes_[at.node];
  if (!node.any() || at.apart(first, last)) return 0;
  if (at.within(first, last)) return areas_[at.node].bytes_ns - static_cast<double>(taken.count()) * areas_[at.node].ns;
  return area(at.left(), first, last, taken + node.taken) + area(at.right(), first, last, taken + node.taken);
}

void ExcessTree::take(const Gap& gap) {
  for_each_run_of_leaves(gap, [&](std::size_t first, std::size_t last) { take(all(), first, last, gap.size); });
}

bool ExcessTree::relieves(const Gap& gap) const {
  bool above = false;
  for_each_run_of_leaves(gap, [&](std::size_t first, std::size_t last) { above = above || any(all(), first, last); });
  return above;
}

double ExcessTree::excess(const Gap& gap) const {
  double sum = 0;
  for_each_run_of_leaves(gap, [&](std::size_t first, std::size_t last) { sum += area(all(), first, last, {}); });
  return sum;
}

}  // namespace tidepool
