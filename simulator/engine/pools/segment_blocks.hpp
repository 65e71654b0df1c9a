// Blocks of an allocator's segments, each linked to its neighbours.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/engine/pools/address_map.hpp"

namespace tidepool {

/// A range of addresses of one segment, used or free. Blocks of a segment are linked in address order and cover it.
struct SegmentBlock {
  static constexpr std::uint32_t kNone = AddressMap::kNone;

  Bytes address = {};
  Bytes size = {};
  std::uint32_t before = kNone;  ///< neighbours within the segment
  std::uint32_t next = kNone;
  std::uint32_t pool = 0;       ///< the allocator's index of the set of free blocks that the block belongs to
  std::uint32_t range = kNone;  ///< the expandable range that it lies in, if any
  bool used = false;
  bool mapped = true;      ///< memory is mapped to its addresses
  std::int64_t since = 0;  ///< the allocator's clock when the block was freed

  /// Whether the block is only a part of its segment.
  bool split() const { return before != kNone || next != kNone; }
};

/// Storage of blocks; ids stay valid until remove(). Every call is O(1).
class SegmentBlocks {
 public:
  static constexpr std::uint32_t kNone = SegmentBlock::kNone;

  SegmentBlock& operator[](std::uint32_t id) { return blocks_[id]; }
  const SegmentBlock& operator[](std::uint32_t id) const { return blocks_[id]; }

  std::uint32_t add(const SegmentBlock& block) {
    if (spare_.empty()) {
      blocks_.push_back(block);
      return static_cast<std::uint32_t>(blocks_.size() - 1);
    }
    const std::uint32_t id = spare_.back();
    spare_.pop_back();
    blocks_[id] = block;
    return id;
  }
  void remove(std::uint32_t id) { spare_.push_back(id); }

  /// Shortens `id` to its first `size` bytes. @return a new block with the other bytes, otherwise equal to `id`
  std::uint32_t split(std::uint32_t id, Bytes size) {
    SegmentBlock rest = blocks_[id];
    rest.address += size;
    rest.size -= size;
    rest.before = id;
    const std::uint32_t added = add(rest);
    if (rest.next != kNone) blocks_[rest.next].before = added;
    blocks_[id].next = added;
    blocks_[id].size = size;
    return added;
  }

  /// Merges the block after `id` into `id`, and removes it.
  void absorb_next(std::uint32_t id) {
    const std::uint32_t gone = blocks_[id].next;
    blocks_[id].size += blocks_[gone].size;
    blocks_[id].next = blocks_[gone].next;
    if (blocks_[gone].next != kNone) blocks_[blocks_[gone].next].before = id;
    remove(gone);
  }

 private:
  std::vector<SegmentBlock> blocks_;
  std::vector<std::uint32_t> spare_;
};

}  // namespace tidepool
