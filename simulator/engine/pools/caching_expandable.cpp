// Expandable segments of PyTorch's caching allocator: ranges of addresses that get their memory page by page.
#include <algorithm>

#include "simulator/engine/pools/caching_allocator.hpp"

namespace tidepool {
namespace {

/// The size of one expandable segment's range, unless range_size is set or the allocator's limit is smaller: then a
/// range has range_size or 9/8 of the limit.
constexpr Bytes kLargestRange{std::int64_t{1} << 46};

}  // namespace

/// The size that a free block can grow to within its range.
Bytes CachingAllocator::size_with_room(std::uint32_t id) const {
  const std::uint32_t next = blocks_[id].next;
  return blocks_[id].size + (next != kNone && !blocks_[next].mapped ? blocks_[next].size : Bytes{});
}

/// Maps the missing pages at the first place that has enough addresses, unmapped block by unmapped block. If the device
/// refuses the pages of a block, those of earlier blocks stay cached.
std::uint32_t CachingAllocator::grow_expandable(std::uint32_t cache, Bytes size) {
  std::uint32_t id = find_expandable(cache, size);
  if (!blocks_[id].mapped) {
    id = map_block(id, std::min(blocks_[id].size, size));
    if (id == kNone) return kNone;
  }
  while (blocks_[id].size < size) {
    const std::uint32_t next = blocks_[id].next;
    id = map_block(next, std::min(size - blocks_[id].size, blocks_[next].size));
    if (id == kNone) return kNone;
  }
  erase_free(id);
  return id;
}

/// The lowest unmapped block, or the free block before it, from whose beginning on `size` bytes are free or unmapped;
/// the block of a new range if there is none.
std::uint32_t CachingAllocator::find_expandable(std::uint32_t cache, Bytes size) {
  for (const auto& [address, unmapped] : caches_[cache].unmapped) {
    std::uint32_t first = unmapped;
    if (const std::uint32_t before = blocks_[first].before; before != kNone && !blocks_[before].used) first = before;
    Bytes room;
    for (std::uint32_t id = first; id != kNone && !blocks_[id].used && room < size; id = blocks_[id].next)
      room += blocks_[id].size;
    if (room >= size) return first;
  }
  const Bytes page = caches_[cache].key.small ? kCachingSmallSegment : config_.large_segment_size;
  const Bytes whole = config_.range_size != CachingConfig::kUnlimited ? config_.range_size
                      : limit_ < kLargestRange                        ? limit_ + limit_ / 8
                                                                      : kLargestRange;
  const Bytes length = round_up(std::max(whole, size), page);
  return add_range(cache, {device_->reserve_addresses(length), length});
}

/// Adds a range without memory, as one unmapped block.
std::uint32_t CachingAllocator::add_range(std::uint32_t cache, const Block& range) {
  const Bytes page = caches_[cache].key.small ? kCachingSmallSegment : config_.large_segment_size;
  ranges_.push_back({range.offset, range.size, page});
  const std::uint32_t id = blocks_.add({.address = range.offset,
                                        .size = range.size,
                                        .pool = cache,
                                        .range = static_cast<std::uint32_t>(ranges_.size() - 1),
                                        .mapped = false});
  insert_unmapped(id);
  return id;
}

/// Maps whole pages for the first `size` bytes of an unmapped block, which begins at a page boundary. @return the free
/// block that now contains these pages; kNone if the device refuses
std::uint32_t CachingAllocator::map_block(std::uint32_t id, Bytes size) {
  const Bytes mapped = round_up(size, ranges_[blocks_[id].range].page);
  if (!device_->map(blocks_[id].address, mapped, ranges_[blocks_[id].range].page)) return kNone;
  erase_unmapped(id);
  if (mapped < blocks_[id].size) insert_unmapped(blocks_.split(id, mapped));
  blocks_[id].mapped = true;
  reserved_ += mapped;
  const std::uint32_t merged = merge_free(id);
  insert_free(merged);
  return merged;
}

/// Unmaps the whole pages inside a free block; the rest of it on both sides stays cached.
void CachingAllocator::unmap_block(std::uint32_t id) {
  const Range& range = ranges_[blocks_[id].range];
  const Bytes begin = blocks_[id].address - range.address;
  const Bytes first = round_up(begin, range.page);
  const Bytes last = range.page * ((begin + blocks_[id].size) / range.page);
  if (first >= last) return;
  erase_free(id);
  if (first > begin) {
    const std::uint32_t rest = blocks_.split(id, first - begin);
    insert_free(id);
    id = rest;
  }
  if (blocks_[id].size > last - first) insert_free(blocks_.split(id, last - first));
  const Block pages{blocks_[id].address, blocks_[id].size};
  blocks_[id].mapped = false;
  id = merge_free(id);
  reserved_ -= pages.size;
  device_->unmap(pages.offset, pages.size, range.page);
  if (blocks_[id].split()) {
    insert_unmapped(id);
  } else {
    device_->release_addresses(range.address, range.size);
    blocks_.remove(id);
  }
}

void CachingAllocator::insert_unmapped(std::uint32_t id) {
  auto& unmapped = caches_[blocks_[id].pool].unmapped;
  const std::pair entry{blocks_[id].address, id};
  unmapped.insert(std::lower_bound(unmapped.begin(), unmapped.end(), entry), entry);
}

void CachingAllocator::erase_unmapped(std::uint32_t id) {
  auto& unmapped = caches_[blocks_[id].pool].unmapped;
  unmapped.erase(std::lower_bound(unmapped.begin(), unmapped.end(), std::pair{blocks_[id].address, id}));
}

void CachingAllocator::adopt_range(const Key& key, const Block& range, std::span<const Block> mapped,
                                   std::span<const Block> used) {
  std::uint32_t id = add_range(cache_of(key), range);
  for (const Block& run : mapped) {
    erase_unmapped(id);
    if (blocks_[id].address < run.offset) {
      const std::uint32_t rest = blocks_.split(id, run.offset - blocks_[id].address);
      insert_unmapped(id);
      id = rest;
    }
    const std::uint32_t rest = blocks_[id].size == run.size ? kNone : blocks_.split(id, run.size);
    if (rest != kNone) insert_unmapped(rest);
    blocks_[id].mapped = true;
    reserved_ += run.size;
    while (!used.empty() && used.front().offset < run.offset + run.size) {
      const Block block = used.front();
      used = used.subspan(1);
      if (blocks_[id].address < block.offset) {
        const std::uint32_t tail = blocks_.split(id, block.offset - blocks_[id].address);
        insert_free(id);
        id = tail;
      }
      const std::uint32_t tail = blocks_[id].size == block.size ? kNone : blocks_.split(id, block.size);
      blocks_[id].used = true;
      used_.insert(block.offset, id);
      allocated_ += block.size;
      id = tail;
    }
    if (id != kNone) insert_free(id);
    id = rest;
  }
}

}  // namespace tidepool
