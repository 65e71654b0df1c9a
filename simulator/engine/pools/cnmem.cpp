#include "simulator/engine/pools/cnmem.hpp"

#include <algorithm>

namespace tidepool {

CnMem::CnMem(Device& device, Bytes initial) : device_{&device} {
  const Bytes size = round_up(initial, kGranularity);
  if (size == Bytes{}) return;
  const std::optional<Bytes> address = device_->reserve(size);
  if (address) free_.insert({size, *address, add_segment(*address, size)});
}

std::uint32_t CnMem::add_segment(Bytes address, Bytes size) { return blocks_.add({.address = address, .size = size}); }

std::optional<Block> CnMem::malloc(Bytes requested) {
  const Bytes size = std::max(round_up(requested, kGranularity), kGranularity);
  const FreeIndex::Place found = free_.find(size);
  std::uint32_t id = SegmentBlocks::kNone;
  if (found.valid()) {
    id = free_.at(found).node;
    free_.erase(found);
    if (blocks_[id].size > size) {
      const std::uint32_t rest = blocks_.split(id, size);
      free_.insert({blocks_[rest].size, blocks_[rest].address, rest});
    }
  } else {
    const std::optional<Bytes> address = device_->reserve(size);
    if (!address) return {};
    id = add_segment(*address, size);
  }
  blocks_[id].used = true;
  used_.insert(blocks_[id].address, id);
  return Block{blocks_[id].address, size};
}

bool CnMem::free(Bytes address) {
  std::uint32_t id = used_.take(address);
  if (id == SegmentBlocks::kNone) return false;
  blocks_[id].used = false;
  absorb_free_next(id);
  const std::uint32_t before = blocks_[id].before;
  if (before != SegmentBlocks::kNone && !blocks_[before].used) {
    free_.erase(blocks_[before].size, blocks_[before].address);
    blocks_.absorb_next(before);
    id = before;
  }
  free_.insert({blocks_[id].size, blocks_[id].address, id});
  return true;
}

void CnMem::absorb_free_next(std::uint32_t id) {
  const std::uint32_t next = blocks_[id].next;
  if (next == SegmentBlocks::kNone || blocks_[next].used) return;
  free_.erase(blocks_[next].size, blocks_[next].address);
  blocks_.absorb_next(id);
}

}  // namespace tidepool
