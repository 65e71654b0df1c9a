// One contiguous address range from which blocks are cut and into which they merge back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/pool.hpp"

namespace tidepool {

/// The addresses [0, capacity), in blocks; adjacent free blocks merge. The index of the free blocks decides which one
/// is taken: FreeIndex gives a best fit, AddressIndex a first fit; both prefer the lower address among equals. The
/// memory above the last block in use is a free block like every other, but it is not in the index.
template <class Index>
class Arena {
 public:
  struct Taken {
    Bytes address;
    std::uint32_t node = 0;  // id of the block until it is released
  };

  explicit Arena(Bytes capacity) : capacity_{capacity} {}

  /// Takes the low part of the free block that the index chooses; none if no block fits. `size` > 0.
  std::optional<Taken> place(Bytes size) {
    const typename Index::Place found = index_.find(size);
    const Bytes above = capacity_ - top_;
    if (found.valid() && (!Index::kSmallestFirst || above < size || index_.at(found).size <= above))
      return take(found, size);
    if (above < size) return {};
    const std::uint32_t node = make({top_, size, last_, kNone, false});
    if (last_ != kNone) nodes_[last_].next = node;
    last_ = node;
    top_ += size;
    return Taken{nodes_[node].address, node};
  }

  /// Takes a block back, given by the node that place() returned.
  void release(std::uint32_t node) {
    if (const std::uint32_t next = nodes_[node].next; next != kNone && nodes_[next].free) {
      index_.erase(nodes_[next].size, nodes_[next].address);
      absorb_next(node);
    }
    if (const std::uint32_t before = nodes_[node].before; before != kNone && nodes_[before].free) {
      index_.erase(nodes_[before].size, nodes_[before].address);
      node = before;
      absorb_next(node);
    }
    if (node == last_) {
      top_ = nodes_[node].address;
      last_ = nodes_[node].before;
      if (last_ != kNone) nodes_[last_].next = kNone;
      spare_.push_back(node);
    } else {
      nodes_[node].free = true;
      index_.insert({nodes_[node].size, nodes_[node].address, node});
    }
  }

  Bytes largest_hole() const { return std::max(index_.largest(), capacity_ - top_); }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Node {
    Bytes address = {};
    Bytes size = {};
    std::uint32_t before = kNone;
    std::uint32_t next = kNone;
    bool free = false;
  };

  Taken take(typename Index::Place found, Bytes size) {
    const std::uint32_t node = index_.at(found).node;
    index_.erase(found);
    const Bytes address = nodes_[node].address;
    const Bytes rest = nodes_[node].size - size;
    if (rest > Bytes{}) {
      const std::uint32_t next = nodes_[node].next;  // there is one: the last block is never free
      const std::uint32_t remainder = make({address + size, rest, node, next, true});
      nodes_[node].next = remainder;
      nodes_[next].before = remainder;
      nodes_[node].size = size;
      index_.insert({rest, address + size, remainder});
    }
    nodes_[node].free = false;
    return {address, node};
  }

  void absorb_next(std::uint32_t node) {
    const std::uint32_t gone = nodes_[node].next;
    nodes_[node].size += nodes_[gone].size;
    nodes_[node].next = nodes_[gone].next;
    if (nodes_[gone].next != kNone) nodes_[nodes_[gone].next].before = node;
    if (gone == last_) last_ = node;
    spare_.push_back(gone);
  }

  std::uint32_t make(const Node& node) {
    if (spare_.empty()) {
      nodes_.push_back(node);
      return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    const std::uint32_t id = spare_.back();
    spare_.pop_back();
    nodes_[id] = node;
    return id;
  }

  Bytes capacity_;
  Bytes top_;  // end of the last block in use
  std::uint32_t last_ = kNone;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> spare_;
  Index index_;
};

}  // namespace tidepool
