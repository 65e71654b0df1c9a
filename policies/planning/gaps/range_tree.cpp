#include "policies/planning/gaps/range_tree.hpp"

#include <algorithm>

namespace tidepool {
namespace {

constexpr Bytes kNothing{-(std::int64_t{1} << 62)};  // less than any slot has
constexpr std::size_t kNowhere = ~std::size_t{0};

}  // namespace

RangeTree::RangeTree(const std::vector<Bytes>& slots) : slots_{slots.size()} {
  while (width_ < slots_) width_ *= 2;
  node_.resize(2 * width_, Node{kNothing, {}});
  for (std::size_t k = 0; k < slots_; ++k) node_[width_ + k].most = slots[k];
  for (std::size_t i = width_; i-- > 1;) node_[i].most = std::max(node_[2 * i].most, node_[2 * i + 1].most);
}

void RangeTree::add(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
                    Bytes bytes) {
  if (first >= end || last <= begin) return;
  Node& here = node_[node];
  if (first <= begin && end <= last) {
    here.most += bytes;
    here.added += bytes;
    return;
  }
  const std::size_t middle = (begin + end) / 2;
  add(2 * node, begin, middle, first, last, bytes);
  add(2 * node + 1, middle, end, first, last, bytes);
  here.most = std::max(node_[2 * node].most, node_[2 * node + 1].most) + here.added;
}

Bytes RangeTree::most(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last) const {
  if (first >= end || last <= begin) return kNothing;
  const Node& here = node_[node];
  if (first <= begin && end <= last) return here.most;
  const std::size_t middle = (begin + end) / 2;
  return std::max(most(2 * node, begin, middle, first, last), most(2 * node + 1, middle, end, first, last)) +
         here.added;
}

std::size_t RangeTree::behind_last_above(std::size_t first, std::size_t last, Bytes bytes) const {
  const std::size_t found = first < last ? last_above(1, 0, width_, first, last, bytes) : kNowhere;
  return found == kNowhere ? first : found + 1;
}

std::size_t RangeTree::last_above(std::size_t node, std::size_t begin, std::size_t end, std::size_t first,
                                  std::size_t last, Bytes bytes) const {
  const Node& here = node_[node];
  if (first >= end || last <= begin || here.most <= bytes) return kNowhere;
  if (end - begin == 1) return begin;
  const std::size_t middle = (begin + end) / 2;
  const Bytes below = bytes - here.added;
  const std::size_t right = last_above(2 * node + 1, middle, end, first, last, below);
  return right != kNowhere ? right : last_above(2 * node, begin, middle, first, last, below);
}

}  // namespace tidepool
