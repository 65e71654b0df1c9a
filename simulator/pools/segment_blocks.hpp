// The pieces of an allocator's segments: records linked to their neighbours, found by address while in use.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/pools/address_map.hpp"

namespace tidepool {

/// One piece of a segment. Pieces of a segment are linked in address order, without gaps.
struct SegmentBlock {
  static constexpr std::uint32_t kNone = AddressMap::kNone;

  Bytes address = {};
  Bytes size = {};
  std::uint32_t before = kNone;  ///< neighbours within the segment
  std::uint32_t next = kNone;
  std::uint32_t pool = 0;       ///< the owner's number for the set of free blocks that it belongs to
  std::uint32_t range = kNone;  ///< the expandable range that it lies in, if any
  bool used = false;
  bool mapped = true;      ///< has memory behind it
  std::int64_t since = 0;  ///< clock of the owner when it was freed

  /// Part of a segment, not a whole one.
  bool split() const { return before != kNone || next != kNone; }
};

/// A slab of blocks; ids stay valid until remove().
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

  /// Cuts `id` to its first `size` bytes. @return the rest, a copy of `id` in everything but place
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

  /// `id` takes over the block after it, which is removed.
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
