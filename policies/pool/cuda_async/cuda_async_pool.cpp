#include "policies/pool/cuda_async/cuda_async_pool.hpp"

#include <algorithm>

namespace tidepool {

CudaAsync::CudaAsync(const CudaAsyncConfig& config, const Trace& trace, Device& device, Bytes limit)
    : config_{config}, device_{&device}, limit_{limit}, order_{trace}, queues_(trace.data().streams.size() + 2) {}

std::optional<Block> CudaAsync::malloc(const Request& request) {
  const Bytes size = std::max(round_up(request.size, kAlignment), kAlignment);
  order_.issue_up_to(request.before);
  if (config_.opportunistic) clean(request.now);
  std::uint32_t id = find(size, request.stream, false);
  if (id == kNone) id = grow(size);
  if (id == kNone && give_back(Bytes{})) id = grow(size);
  if (id == kNone && config_.internal_dependencies) id = find(size, request.stream, true);
  if (id == kNone) return {};
  const Free free = free_[id];
  erase(id);
  if (blocks_[id].size > size) insert(blocks_.split(id, size), free);
  blocks_[id].used = true;
  used_.insert(blocks_[id].address, id);
  return Block{blocks_[id].address, size};
}

/// The smallest free block that fits and that `stream` may use now; with `all`, also one that it must wait for.
std::uint32_t CudaAsync::find(Bytes size, StreamId stream, bool all) const {
  const FreeBlock* best = nullptr;
  for (std::uint32_t queue = 0; queue < queues_.size(); ++queue) {
    const FreeIndex& free = queues_[queue];
    const bool at_once = all || queue == kClean || queue == queue_of(stream);
    const bool of_stream = queue != kClean && queue + 1 < queues_.size();
    if (!at_once && !(config_.follow_event_dependencies && of_stream)) continue;
    FreeIndex::Place place = free.find(size);
    if (!at_once)
      while (place.valid() && !order_.after(stream, StreamId{queue - 1}, free_[free.at(place).node].point))
        place = free.next(place);
    if (place.valid() && (best == nullptr || free.at(place) < *best)) best = &free.at(place);
  }
  return best == nullptr ? kNone : best->node;
}

std::uint32_t CudaAsync::grow(Bytes size) {
  // If the limit leaves less than the size in whole granules, the pool takes what is left.
  const Bytes wanted = std::max(size, std::min(round_up(size, config_.granule), limit_ - reserved_));
  const std::optional<Bytes> address = device_->reserve(wanted);
  if (!address) return kNone;
  reserved_ += wanted;
  const std::uint32_t id = blocks_.add({.address = *address, .size = wanted, .pool = kClean});
  insert(id, {});
  return id;
}

/// Releases whole pieces in which nothing is in use or pending, until at most `most` bytes are reserved.
/// @return  whether any was released
bool CudaAsync::give_back(Bytes most) {
  std::vector<std::pair<Bytes, std::uint32_t>> whole;
  for (FreeIndex::Place place = queues_[kClean].first(); place.valid(); place = queues_[kClean].next(place))
    if (const FreeBlock& block = queues_[kClean].at(place); !blocks_[block.node].split())
      whole.emplace_back(block.address, block.node);
  std::sort(whole.begin(), whole.end());
  bool any = false;
  for (const auto& [address, id] : whole) {
    if (reserved_ <= most) break;
    const Bytes size = blocks_[id].size;
    erase(id);
    blocks_.remove(id);
    reserved_ -= size;
    device_->release(address, size);
    any = true;
  }
  return any;
}

void CudaAsync::synchronized(Nanos now) {
  clean(now);
  give_back(config_.release_threshold);
}

/// Makes the blocks clean whose pending uses have ended by `now`.
void CudaAsync::clean(Nanos now) {
  while (!pending_.empty() && pending_.begin()->first <= now) {
    const std::uint32_t id = pending_.begin()->second;
    erase(id);
    put(id, kClean, {});
  }
}

void CudaAsync::free(Bytes address) { put(used_.take(address), kClean, {}); }

void CudaAsync::free_async(Bytes address, const Departure& departure) {
  order_.issue_up_to(departure.before);
  Free free{order_.issued(departure.stream), departure.done};
  for (const StreamUse& use : departure.uses) free.done = std::max(free.done, use.done);
  const bool shared = !departure.uses.empty();
  put(used_.take(address), shared ? static_cast<std::uint32_t>(queues_.size() - 1) : queue_of(departure.stream), free);
}

/// Frees a block that is in no queue, and merges it with neighbours in the same state.
void CudaAsync::put(std::uint32_t id, std::uint32_t queue, const Free& freed) {
  Free free = freed;
  blocks_[id].used = false;
  blocks_[id].pool = queue;
  const auto absorb = [&](std::uint32_t other) {
    free.point = std::max(free.point, free_[other].point);
    free.done = std::max(free.done, free_[other].done);
    erase(other);
  };
  if (const std::uint32_t next = blocks_[id].next; joins(id, next)) {
    absorb(next);
    blocks_.absorb_next(id);
  }
  if (const std::uint32_t before = blocks_[id].before; joins(id, before)) {
    absorb(before);
    blocks_.absorb_next(before);
    id = before;
  }
  insert(id, free);
}

/// Whether a free block may merge with a neighbour. Blocks that several streams have used do not merge.
bool CudaAsync::joins(std::uint32_t id, std::uint32_t other) const {
  return other != kNone && !blocks_[other].used && blocks_[other].pool == blocks_[id].pool &&
         blocks_[id].pool + 1 < queues_.size();
}

void CudaAsync::insert(std::uint32_t id, const Free& free) {
  if (free_.size() <= id) free_.resize(id + 1);
  free_[id] = free;
  queues_[blocks_[id].pool].insert({blocks_[id].size, blocks_[id].address, id});
  if (blocks_[id].pool != kClean) pending_.emplace(free.done, id);
}

void CudaAsync::erase(std::uint32_t id) {
  queues_[blocks_[id].pool].erase(blocks_[id].size, blocks_[id].address);
  if (blocks_[id].pool != kClean) pending_.erase({free_[id].done, id});
}

Bytes CudaAsync::largest_hole() const {
  Bytes largest = limit_ - reserved_;
  for (const FreeIndex& queue : queues_) largest = std::max(largest, queue.largest());
  return largest;
}

}  // namespace tidepool
