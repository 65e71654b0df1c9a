#include "simulator/engine/pools/caching_allocator.hpp"

#include <algorithm>

namespace tidepool {
namespace {

/// Whether memory of a free block can go back to the device: a whole segment, or pages of an expandable one.
bool is_returnable(const SegmentBlock& block) { return block.range != SegmentBlock::kNone || !block.split(); }

}  // namespace

CachingAllocator::CachingAllocator(const CachingConfig& config, Device& device, Bytes limit)
    : config_{config}, device_{&device}, limit_{limit} {}

CachingAllocator::Key CachingAllocator::key_of(Bytes rounded, const Source& source) {
  return {source.owner, source.number, rounded <= kCachingSmallSize, source.stream};
}

const CachingAllocator::Cache* CachingAllocator::find_cache(const Key& key) const {
  for (const Cache& cache : caches_)
    if (cache.key == key) return &cache;
  return nullptr;
}

std::uint32_t CachingAllocator::cache_of(const Key& key) {
  if (const Cache* found = find_cache(key)) return static_cast<std::uint32_t>(found - caches_.data());
  const auto added = static_cast<std::uint32_t>(caches_.size());
  caches_.push_back({key, {}, {}, 0});
  order_.push_back(added);
  std::sort(order_.begin(), order_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return caches_[a].key < caches_[b].key; });
  return added;
}

std::optional<Block> CachingAllocator::malloc(Bytes requested, const Source& source) {
  const Bytes size = rounded_request(config_, requested);
  const Key key = key_of(size, source);
  const std::uint32_t cache = cache_of(key);
  if (collects_garbage() && !key.small && !key.is_private()) ++searches_;
  std::uint32_t id = kNone;
  if (const FreeIndex::Place found = choose(caches_[cache], size); found.valid()) {
    id = caches_[cache].free.at(found).node;
    caches_[cache].free.erase(found);
    caches_[cache].returnable -= is_returnable(blocks_[id]) ? 1 : 0;
  } else {
    if (collects_garbage()) collect_garbage();
    id = grow(cache, size, source.expandable);
    if (id == kNone && release_oversize(cache, size)) id = grow(cache, size, source.expandable);
    if (id == kNone) {
      release_cached_blocks();
      id = grow(cache, size, source.expandable);
    }
    if (id == kNone) return {};
  }
  if (should_split(blocks_[id], size)) insert_free(blocks_.split(id, size));
  SegmentBlock& block = blocks_[id];
  block.used = true;
  used_.insert(block.address, id);
  allocated_ += block.size;
  return Block{block.address, block.size};
}

bool CachingAllocator::free(Bytes address) {
  const std::uint32_t id = used_.take(address);
  if (id == kNone) return false;
  blocks_[id].used = false;
  allocated_ -= blocks_[id].size;
  insert_free(merge_free(id));
  return true;
}

void CachingAllocator::free_after(Bytes address, std::span<const StreamUse> uses) {
  if (uses.empty())
    free(address);
  else
    pending_.add(address, uses);
}

void CachingAllocator::poll(Nanos now) {
  pending_.poll(now, [&](Bytes address) { free(address); });
}

bool CachingAllocator::has_cached(Bytes requested, const Source& source) const {
  const Bytes size = rounded_request(config_, requested);
  const Cache* cache = find_cache(key_of(size, source));
  return cache != nullptr && choose(*cache, size).valid();
}

Bytes CachingAllocator::room_at(Bytes address) const {
  const std::uint32_t id = used_.find(address);
  if (id == kNone) return {};
  const std::uint32_t next = blocks_[id].next;
  const bool free_behind = next != kNone && !blocks_[next].used && blocks_[next].mapped;
  return blocks_[id].size + (free_behind ? blocks_[next].size : Bytes{});
}

Bytes CachingAllocator::largest_hole() const {
  // If the device has 2 MiB left, they serve small requests. If it has 10 MiB or more left, they serve a request of
  // about their own size, since a request of 10 MiB or more gets a segment of its size, rounded up to 2 MiB.
  const Bytes left = limit_ - reserved_;
  Bytes largest = left >= std::min(config_.large_segment_size, kCachingMinLargeAlloc) ? left
                  : left >= kCachingSmallSegment                                      ? kCachingSmallSize
                                                                                      : Bytes{};
  for (const Cache& cache : caches_) largest = std::max(largest, cache.free.largest());
  return largest;
}

/// The cached block that a rounded request gets; not valid: a cache miss.
FreeIndex::Place CachingAllocator::choose(const Cache& cache, Bytes size) const {
  FreeIndex::Place found = cache.free.find(size);
  if (!found.valid()) return {};
  const auto expandable = [&](FreeIndex::Place place) { return blocks_[cache.free.at(place).node].range != kNone; };
  if (expandable(found) && config_.expandable_segments) {
    // An expandable block counts with the size that it can grow to, so a larger one that cannot grow may fit better.
    for (FreeIndex::Place next = cache.free.next(found); expandable(found) && next.valid();
         next = cache.free.next(next)) {
      if (size_with_room(cache.free.at(next).node) >= size_with_room(cache.free.at(found).node)) break;
      found = next;
    }
  } else {
    while (found.valid() && expandable(found)) found = cache.free.next(found);
    if (!found.valid()) return {};
  }
  const Bytes available = cache.free.at(found).size;
  if (size < config_.max_split_size && available >= config_.max_split_size) return {};
  if (size >= config_.max_split_size && available >= size + config_.max_non_split_rounding) return {};
  return found;
}

bool CachingAllocator::should_split(const SegmentBlock& block, Bytes size) const {
  const Bytes remaining = block.size - size;
  if (caches_[block.pool].key.small || config_.expandable_segments) return remaining >= kCachingMinBlock;
  return size < config_.max_split_size && remaining > kCachingSmallSize;
}

/// A new block of at least `size` from the device, in no index yet; kNone if the device refuses.
std::uint32_t CachingAllocator::grow(std::uint32_t cache, Bytes size, bool expandable) {
  if (config_.expandable_segments && expandable) return grow_expandable(cache, size);
  const Bytes segment = segment_for(config_, size);
  const std::optional<Bytes> address = device_->reserve(segment);
  if (!address) return kNone;
  reserved_ += segment;
  return blocks_.add({.address = *address, .size = segment, .pool = cache});
}

void CachingAllocator::insert_free(std::uint32_t id) {
  SegmentBlock& block = blocks_[id];
  block.since = searches_;
  Cache& cache = caches_[block.pool];
  cache.free.insert({block.size, block.address, id});
  cache.returnable += is_returnable(block) ? 1 : 0;
}

void CachingAllocator::erase_free(std::uint32_t id) {
  Cache& cache = caches_[blocks_[id].pool];
  cache.free.erase(blocks_[id].size, blocks_[id].address);
  cache.returnable -= is_returnable(blocks_[id]) ? 1 : 0;
}

/// Merges the block after `id` into `id` if both are free, and both are mapped or both are not.
void CachingAllocator::merge_next(std::uint32_t id) {
  const std::uint32_t next = blocks_[id].next;
  if (next == kNone || blocks_[next].used || blocks_[next].mapped != blocks_[id].mapped) return;
  blocks_[next].mapped ? erase_free(next) : erase_unmapped(next);
  blocks_.absorb_next(id);
}

/// Merges a block that is free and in no index with its free neighbours. @return the block that is left
std::uint32_t CachingAllocator::merge_free(std::uint32_t id) {
  merge_next(id);
  const std::uint32_t before = blocks_[id].before;
  if (before == kNone || blocks_[before].used || blocks_[before].mapped != blocks_[id].mapped) return id;
  blocks_[before].mapped ? erase_free(before) : erase_unmapped(before);
  blocks_.absorb_next(before);
  return before;
}

/// Gives a free segment back to the device. The segment is one block: it was never split, or has merged again.
void CachingAllocator::drop_segment(std::uint32_t id) {
  const Block segment{blocks_[id].address, blocks_[id].size};
  erase_free(id);
  blocks_.remove(id);
  reserved_ -= segment.size;
  device_->release(segment.offset, segment.size);
}

/// While more bytes are reserved than the threshold, gives whole large segments of the default pool back to the device,
/// in rounds: all those unused for at least the average time.
void CachingAllocator::collect_garbage() {
  const Bytes threshold{
      static_cast<std::int64_t>(config_.garbage_collection_threshold * static_cast<double>(limit_.count()))};
  if (reserved_ <= threshold) return;
  const Bytes target = reserved_ - threshold;
  const auto age = [&](std::uint32_t id) { return searches_ - blocks_[id].since; };
  std::vector<std::uint32_t> whole;
  for (const std::uint32_t cache : order_) {
    if (caches_[cache].key.small || caches_[cache].key.is_private()) continue;
    const FreeIndex& free = caches_[cache].free;
    for (FreeIndex::Place place = free.first(); place.valid(); place = free.next(place))
      if (!blocks_[free.at(place).node].split()) whole.push_back(free.at(place).node);
  }
  std::int64_t total_age = 0;
  for (const std::uint32_t id : whole) total_age += age(id);
  Bytes reclaimed;
  for (bool freed = true; freed && reclaimed < target && !whole.empty();) {
    const double oldest = static_cast<double>(total_age) / static_cast<double>(whole.size());
    freed = false;
    std::vector<std::uint32_t> kept;
    for (const std::uint32_t id : whole) {
      if (blocks_[id].range != kNone || static_cast<double>(age(id)) < oldest) {
        kept.push_back(id);
        continue;
      }
      freed = true;
      reclaimed += blocks_[id].size;
      total_age -= age(id);
      drop_segment(id);
    }
    whole = std::move(kept);
  }
}

/// With a split limit, gives back the smallest oversize block that is large enough for the request; if there is none,
/// the largest ones until their sum is large enough. @return whether enough was given back
bool CachingAllocator::release_oversize(std::uint32_t cache, Bytes size) {
  if (config_.max_split_size == CachingConfig::kUnlimited) return false;
  const FreeIndex& free = caches_[cache].free;
  const Bytes wanted = std::max(size, config_.max_split_size);
  const FreeIndex::Place fitting = free.find(wanted);
  if (fitting.valid() && blocks_[free.at(fitting).node].range == kNone) {
    drop_segment(free.at(fitting).node);
    return true;
  }
  std::vector<std::uint32_t> oversize;
  for (FreeIndex::Place place = free.find(config_.max_split_size); place.valid(); place = free.next(place))
    oversize.push_back(free.at(place).node);
  Bytes released;
  for (auto id = oversize.rbegin(); id != oversize.rend() && released < wanted; ++id) {
    if (blocks_[*id].range != kNone) continue;
    released += blocks_[*id].size;
    drop_segment(*id);
  }
  return released >= wanted;
}

void CachingAllocator::release_cached_blocks(bool private_pools) {
  pending_.finish([&](Bytes address) { free(address); });
  release_family(private_pools, private_pools);
  release_family(private_pools, !private_pools);
}

/// Returns the free small or large blocks of all streams to the device: whole segments first, then pages.
void CachingAllocator::release_family(bool private_pools, bool small) {
  std::vector<std::uint32_t> to_unmap;
  for (const std::uint32_t cache : order_) {
    const Key& key = caches_[cache].key;
    if (key.small != small || key.is_private() != private_pools || caches_[cache].returnable == 0) continue;
    const FreeIndex& free = caches_[cache].free;
    std::vector<std::uint32_t> whole;
    for (FreeIndex::Place place = free.first(); place.valid(); place = free.next(place)) {
      const std::uint32_t id = free.at(place).node;
      if (is_returnable(blocks_[id])) (blocks_[id].range != kNone ? to_unmap : whole).push_back(id);
    }
    for (const std::uint32_t id : whole) drop_segment(id);
  }
  for (const std::uint32_t id : to_unmap) unmap_block(id);
}

void CachingAllocator::adopt_segment(const Key& key, const Block& segment, std::span<const Block> used) {
  const std::uint32_t cache = cache_of(key);
  std::uint32_t id = blocks_.add({.address = segment.offset, .size = segment.size, .pool = cache});
  reserved_ += segment.size;
  for (const Block& block : used) {
    if (blocks_[id].address < block.offset) {
      const std::uint32_t rest = blocks_.split(id, block.offset - blocks_[id].address);
      insert_free(id);
      id = rest;
    }
    const bool last = blocks_[id].size == block.size;
    const std::uint32_t rest = last ? kNone : blocks_.split(id, block.size);
    blocks_[id].used = true;
    used_.insert(block.offset, id);
    allocated_ += block.size;
    id = rest;
  }
  if (id != kNone) insert_free(id);
}

}  // namespace tidepool
