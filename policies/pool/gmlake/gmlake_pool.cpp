#include "policies/pool/gmlake/gmlake_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "traces/base/error.hpp"

namespace tidepool {
namespace {

constexpr Bytes kGone{-1};  // address of a page that was released

}  // namespace

GmLake::GmLake(const GmLakeConfig& config, Device& device, Bytes limit)
    : config_{config}, device_{&device}, limit_{limit}, small_{CachingConfig{}, device, limit} {}

std::optional<Block> GmLake::malloc(Bytes requested, std::int64_t stream, Nanos now) {
  if (rounded_request({}, requested) <= kCachingSmallSize) {
    std::optional<Block> block = small_.malloc(requested, {.stream = stream});
    if (block) return block;
    release_cached_blocks();
    return small_.malloc(requested, {.stream = stream});
  }
  const Bytes size = round_up(requested, kPage);
  std::optional<Block> block = take_block(size, stream);
  if (!block) block = take_stitched(size, stream);
  if (!block && config_.defragment_level <= 0) block = stitch(size, stream, now);
  if (!block) block = take_segment(size, stream);
  if (!block && config_.defragment_level <= 1) block = stitch(size, stream, now);
  if (!block) {
    release_cached_blocks();
    block = take_segment(size, stream);
  }
  if (!block && config_.defragment_level <= 2) block = stitch(size, stream, now);
  return block;
}

std::optional<Block> GmLake::take_block(Bytes size, std::int64_t stream) {
  const FreeIndex& free = caches_[stream].blocks;
  const FreeIndex::Place found = free.find(size);
  if (!found.valid()) return {};
  const std::uint32_t id = occupy(free.at(found).address, size);
  used_.insert(blocks_[id].address, id);
  return Block{blocks_[id].address, size};
}

std::optional<Block> GmLake::take_stitched(Bytes size, std::int64_t stream) {
  const FreeIndex& free = caches_[stream].stitched;
  const FreeIndex::Place found = free.find(size);
  if (!found.valid() ||
      static_cast<double>(free.at(found).size.count()) > static_cast<double>(size.count()) * config_.reuse_limit)
    return {};
  const std::uint32_t id = free.at(found).node;
  Stitched& block = stitched_[id];
  index(id, false);
  block.used = static_cast<std::size_t>(size / kPage);
  for (std::size_t i = 0; i < block.used;) {
    // Pages that are adjacent in memory and belong to one block are taken together.
    const std::uint32_t owner = block_at(block.pages[i]);
    const Bytes first = block.pages[i], end = blocks_[owner].address + blocks_[owner].size;
    Bytes last = first + kPage;
    for (++i; i < block.used && block.pages[i] == last && last < end; ++i) last += kPage;
    occupy(first, last - first);
  }
  used_stitched_.insert(block.address, id);
  return Block{block.address, size};
}

/// Shows the pages of free blocks, the largest first, under new addresses.
std::optional<Block> GmLake::stitch(Bytes size, std::int64_t stream, Nanos now) {
  const FreeIndex& free = caches_[stream].blocks;
  if (size < config_.fragment_limit || free.count() < 2) return {};
  std::vector<Block> parts;
  for (FreeIndex::Place place = free.first(); place.valid(); place = free.next(place))
    parts.push_back({free.at(place).address, free.at(place).size});
  std::reverse(parts.begin(), parts.end());
  Bytes sum;
  std::size_t count = 0;
  for (; count < parts.size() && sum < size; ++count) sum += parts[count].size;
  if (sum < size) return {};
  parts.resize(count);
  parts.back().size -= sum - size;

  Stitched block;
  block.stream = stream;
  for (const Block& part : parts) {
    occupy(part.offset, part.size);
    for (Bytes page = part.offset; page < part.offset + part.size; page += kPage) block.pages.push_back(page);
  }
  block.used = block.busy = block.pages.size();
  block.address = device_->reserve_addresses(size);
  show_pages(block);
  std::uint32_t id = static_cast<std::uint32_t>(stitched_.size());
  if (spare_stitched_.empty()) {
    stitched_.emplace_back();
  } else {
    id = spare_stitched_.back();
    spare_stitched_.pop_back();
  }
  for (const Bytes page : block.pages) pages_.at(page).shown_by.push_back(id);
  const Block result{block.address, size};
  stitched_[id] = std::move(block);
  used_stitched_.insert(result.offset, id);
  total_stitched_ += size;
  if (total_stitched_ > config_.auto_gc) collect_stitched(now);
  return result;
}

void GmLake::show_pages(const Stitched& block) {
  for (std::size_t i = 0; i < block.pages.size();) {
    const std::size_t first = i;
    for (++i; i < block.pages.size() && block.pages[i] == block.pages[i - 1] + kPage;) ++i;
    device_->show(block.address + kPage * static_cast<std::int64_t>(first),
                  kPage * static_cast<std::int64_t>(i - first), block.pages[first]);
  }
}

std::optional<Block> GmLake::take_segment(Bytes size, std::int64_t stream) {
  const Bytes segment = segment_for({}, size);
  if (segment > limit_ - reserved_ - small_.reserved()) return {};
  if (segment > kMostReserved - reserved_)
    throw InputError{fmt::format("gmlake: {} in pages of 2 MiB; expected at most {}, since each page is counted",
                                 to_text(reserved_ + segment), to_text(kMostReserved))};
  const Bytes address = device_->reserve_addresses(segment);
  if (!device_->map(address, segment, kPage)) {
    device_->release_addresses(address, segment);
    return {};
  }
  reserved_ += segment;
  auto known = std::find(streams_.begin(), streams_.end(), stream);
  if (known == streams_.end()) known = streams_.insert(known, stream);
  const auto pool = static_cast<std::uint32_t>(known - streams_.begin());
  by_address_[address] = blocks_.add({.address = address, .size = segment, .pool = pool});
  for (Bytes page = address; page < address + segment; page += kPage) pages_[page] = {};
  insert_free(block_at(address));
  const std::uint32_t id = occupy(address, size);
  used_.insert(address, id);
  return Block{address, size};
}

/// Takes [address, address + size) out of its free block. The remainders on both sides stay free.
std::uint32_t GmLake::occupy(Bytes address, Bytes size) {
  std::uint32_t id = block_at(address);
  erase_free(id);
  if (blocks_[id].address < address) {
    const std::uint32_t rest = split(id, address - blocks_[id].address);
    insert_free(id);
    id = rest;
  }
  if (blocks_[id].size > size) insert_free(split(id, size));
  blocks_[id].used = true;
  mark(address, size, true);
  return id;
}

/// Frees a block and merges it with its free neighbours.
void GmLake::vacate(std::uint32_t id) {
  blocks_[id].used = false;
  mark(blocks_[id].address, blocks_[id].size, false);
  if (const std::uint32_t next = blocks_[id].next; next != kNone && !blocks_[next].used) {
    erase_free(next);
    by_address_.erase(blocks_[next].address);
    blocks_.absorb_next(id);
  }
  if (const std::uint32_t before = blocks_[id].before; before != kNone && !blocks_[before].used) {
    erase_free(before);
    by_address_.erase(blocks_[id].address);
    blocks_.absorb_next(before);
    id = before;
  }
  insert_free(id);
}

bool GmLake::free(Bytes address, Nanos done) {
  if (const std::uint32_t id = used_.take(address); id != kNone) {
    vacate(id);
    return true;
  }
  const std::uint32_t id = used_stitched_.take(address);
  if (id == kNone) return small_.free(address);
  Stitched& block = stitched_[id];
  std::vector<std::uint32_t> parts;
  for (std::size_t i = 0; i < block.used;) {
    parts.push_back(block_at(block.pages[i]));
    i += static_cast<std::size_t>(blocks_[parts.back()].size / kPage);
  }
  block.used = 0;
  block.freed = ++frees_;
  block.done = done;
  for (const std::uint32_t part : parts) vacate(part);
  if (block.doomed) drop_stitched(id);
  return true;
}

/// Updates stitched blocks when their pages come into use or become free.
void GmLake::mark(Bytes address, Bytes size, bool used) {
  for (auto page = pages_.find(address); page != pages_.end() && page->first < address + size; ++page) {
    page->second.used = used;
    for (const std::uint32_t id : page->second.shown_by) {
      Stitched& block = stitched_[id];
      if (used && block.available()) index(id, false);
      used ? ++block.busy : --block.busy;
      if (!used && block.available() && !block.doomed) index(id, true);
    }
  }
}

/// Adds a free stitched block to the index of take_stitched(), or removes it.
void GmLake::index(std::uint32_t id, bool available) {
  const Stitched& block = stitched_[id];
  FreeIndex& free = caches_[block.stream].stitched;
  if (available)
    free.insert({block.size(), block.address, id});
  else
    free.erase(block.size(), block.address);
}

void GmLake::free_after(Bytes address, std::span<const StreamUse> uses, Nanos done) {
  if (uses.empty())
    free(address, done);
  else
    pending_.add(address, uses);
}

void GmLake::poll(Nanos now) {
  pending_.poll(now, [&](Bytes address) { free(address, now); });
}

void GmLake::release_cached_blocks() {
  pending_.finish([&](Bytes address) { free(address, Nanos{}); });
  std::vector<std::uint32_t> whole;
  for (const auto& [stream, cache] : caches_)
    for (FreeIndex::Place place = cache.blocks.first(); place.valid(); place = cache.blocks.next(place))
      if (!blocks_[cache.blocks.at(place).node].split()) whole.push_back(cache.blocks.at(place).node);
  for (const std::uint32_t id : whole) drop_segment(id);
  small_.release_cached_blocks();
}

void GmLake::drop_segment(std::uint32_t id) {
  const Block segment{blocks_[id].address, blocks_[id].size};
  const auto begin = pages_.find(segment.offset);
  const auto end = pages_.lower_bound(segment.offset + segment.size);
  for (auto page = begin; page != end; ++page)
    for (const std::uint32_t shown : std::vector<std::uint32_t>{page->second.shown_by}) {
      Stitched& block = stitched_[shown];
      if (block.used == 0) {
        drop_stitched(shown);
        continue;
      }
      // The block's user does not need this page. The block is dropped when this use ends.
      const auto at = std::find(block.pages.begin(), block.pages.end(), page->first);
      device_->hide(block.address + kPage * (at - block.pages.begin()), kPage);
      *at = kGone;
      block.doomed = true;
    }
  pages_.erase(begin, end);
  erase_free(id);
  by_address_.erase(segment.offset);
  blocks_.remove(id);
  reserved_ -= segment.size;
  device_->unmap(segment.offset, segment.size, kPage);
  device_->release_addresses(segment.offset, segment.size);
}

void GmLake::drop_stitched(std::uint32_t id) {
  Stitched& block = stitched_[id];
  if (block.available() && !block.doomed) index(id, false);
  for (std::size_t i = 0; i < block.pages.size(); ++i) {
    if (block.pages[i] == kGone) continue;
    std::erase(pages_.at(block.pages[i]).shown_by, id);
    const std::size_t first = i;
    while (i + 1 < block.pages.size() && block.pages[i + 1] != kGone) {
      ++i;
      std::erase(pages_.at(block.pages[i]).shown_by, id);
    }
    device_->hide(block.address + kPage * static_cast<std::int64_t>(first),
                  kPage * static_cast<std::int64_t>(i + 1 - first));
  }
  device_->release_addresses(block.address, block.size());
  total_stitched_ -= block.size();
  block = {};
  block.exists = false;
  spare_stitched_.push_back(id);
}

/// Drops free stitched blocks, in the order in which they were freed on each stream, up to the first one that its
/// stream still uses: first blocks with some pages in use elsewhere, then the others.
void GmLake::collect_stitched(Nanos now) {
  std::vector<std::uint32_t> free;
  for (std::uint32_t id = 0; id < stitched_.size(); ++id)
    if (stitched_[id].exists && stitched_[id].used == 0) free.push_back(id);
  std::sort(free.begin(), free.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto key = [&](std::uint32_t id) {
      return std::tuple{stitched_[id].busy == 0, stitched_[id].stream, stitched_[id].freed};
    };
    return key(a) < key(b);
  });
  const auto same_queue = [&](std::uint32_t a, bool whole, std::int64_t stream) {
    return (stitched_[a].busy == 0) == whole && stitched_[a].stream == stream;
  };
  for (std::size_t i = 0; i < free.size();) {
    const bool whole = stitched_[free[i]].busy == 0;
    const std::int64_t stream = stitched_[free[i]].stream;
    bool ready = true;
    for (; i < free.size() && same_queue(free[i], whole, stream); ++i) {
      ready = ready && stitched_[free[i]].done <= now;
      if (ready) drop_stitched(free[i]);
    }
  }
}

std::uint32_t GmLake::split(std::uint32_t id, Bytes size) {
  const std::uint32_t rest = blocks_.split(id, size);
  by_address_[blocks_[rest].address] = rest;
  return rest;
}

void GmLake::insert_free(std::uint32_t id) { cache_of(id).blocks.insert({blocks_[id].size, blocks_[id].address, id}); }
void GmLake::erase_free(std::uint32_t id) { cache_of(id).blocks.erase(blocks_[id].size, blocks_[id].address); }

Bytes GmLake::largest_hole() const {
  Bytes largest = std::max(limit_ - reserved_ - small_.reserved(), small_.largest_hole());
  for (const auto& [stream, cache] : caches_) {
    Bytes sum;
    for (FreeIndex::Place place = cache.blocks.first(); place.valid(); place = cache.blocks.next(place))
      sum += cache.blocks.at(place).size;
    largest = std::max(
        {largest, cache.blocks.largest(), cache.stitched.largest(), sum >= config_.fragment_limit ? sum : Bytes{}});
  }
  return largest;
}

}  // namespace tidepool
