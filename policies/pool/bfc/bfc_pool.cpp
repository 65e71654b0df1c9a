#include "policies/pool/bfc/bfc_pool.hpp"

#include <algorithm>
#include <vector>

namespace tidepool {
namespace {

constexpr Bytes kFirstRegion{2 << 20};
constexpr Bytes kMostWaste{128 << 20};

}  // namespace

Bfc::Bfc(const BfcConfig& config, Device& device, Bytes limit)
    : config_{config}, device_{&device}, limit_{kGranule * (limit / kGranule)}, most_waste_{kMostWaste} {
  if (config.fragmentation_fraction > 0)
    most_waste_ = Bytes{static_cast<std::int64_t>(config.fragmentation_fraction * static_cast<double>(limit.count()))};
  if (config.allow_growth)
    next_region_ = std::min(kFirstRegion, limit_);
  else if (limit_ > Bytes{})
    add_region(Bytes{}, limit_);
}

std::optional<Block> Bfc::malloc(Bytes requested) {
  const Bytes size = std::max(round_up(requested, kGranule), kGranule);
  std::optional<Block> block;
  if (take(size, block) || !config_.allow_growth) return block;
  if (extend(size) && take(size, block)) return block;
  if (config_.garbage_collection && release_free_regions(size) && extend(size)) take(size, block);
  return block;
}

bool Bfc::take(Bytes size, std::optional<Block>& block) {
  const FreeIndex::Place found = free_.find(size);
  if (!found.valid()) return false;
  const std::uint32_t id = free_.at(found).node;
  free_.erase(found);
  const Bytes rest = blocks_[id].size - size;
  if (rest >= size || (rest > Bytes{} && rest >= most_waste_)) insert_free(blocks_.split(id, size));
  blocks_[id].used = true;
  used_.insert(blocks_[id].address, id);
  block = Block{blocks_[id].address, blocks_[id].size};
  return true;
}

bool Bfc::extend(Bytes size) {
  const Bytes left = limit_ - reserved_;
  if (size > left) return false;
  bool enlarged = false;
  for (; size > next_region_; enlarged = true) next_region_ = next_region_ * 2;
  Bytes region = std::min(next_region_, left);
  std::optional<Bytes> address = device_->reserve(region);
  while (!address) {
    // 0.9 as the nearest float, as in TensorFlow's source.
    const Bytes less = round_up(Bytes{static_cast<std::int64_t>(static_cast<float>(region.count()) * 0.9F)}, kGranule);
    region = less < region ? less : region - kGranule;
    if (region < size) return false;
    address = device_->reserve(region);
  }
  if (!enlarged && next_region_ < limit_) next_region_ = next_region_ * 2;  // above the limit, doubling has no effect
  add_region(*address, region);
  return true;
}

bool Bfc::release_free_regions(Bytes size) {
  std::vector<std::uint32_t> whole;
  Bytes gained;
  for (FreeIndex::Place place = free_.first(); place.valid(); place = free_.next(place))
    if (const std::uint32_t id = free_.at(place).node; !blocks_[id].split()) {
      whole.push_back(id);
      gained += blocks_[id].size;
    }
  if (gained == Bytes{} || size > limit_ - reserved_ + gained) return false;
  std::sort(whole.begin(), whole.end(),
            [&](std::uint32_t a, std::uint32_t b) { return blocks_[a].address < blocks_[b].address; });
  for (const std::uint32_t id : whole) {
    const Block region{blocks_[id].address, blocks_[id].size};
    erase_free(id);
    blocks_.remove(id);
    reserved_ -= region.size;
    device_->release(region.offset, region.size);
  }
  return true;
}

bool Bfc::free(Bytes address) {
  std::uint32_t id = used_.take(address);
  if (id == SegmentBlocks::kNone) return false;
  blocks_[id].used = false;
  if (const std::uint32_t next = blocks_[id].next; next != SegmentBlocks::kNone && !blocks_[next].used) {
    erase_free(next);
    blocks_.absorb_next(id);
  }
  if (const std::uint32_t before = blocks_[id].before; before != SegmentBlocks::kNone && !blocks_[before].used) {
    erase_free(before);
    blocks_.absorb_next(before);
    id = before;
  }
  insert_free(id);
  return true;
}

Bytes Bfc::largest_hole() const {
  return config_.allow_growth ? std::max(free_.largest(), limit_ - reserved_) : free_.largest();
}

void Bfc::add_region(Bytes address, Bytes size) {
  reserved_ += size;
  insert_free(blocks_.add({.address = address, .size = size}));
}

void Bfc::insert_free(std::uint32_t id) { free_.insert({blocks_[id].size, blocks_[id].address, id}); }
void Bfc::erase_free(std::uint32_t id) { free_.erase(blocks_[id].size, blocks_[id].address); }

}  // namespace tidepool
