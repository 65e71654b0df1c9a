// Exact model of PyTorch's caching allocator: the address of every request, and the requests to the device.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "simulator/engine/pools/caching_rules.hpp"
#include "simulator/engine/pools/free_index.hpp"
#include "simulator/engine/pools/pending_frees.hpp"
#include "simulator/engine/pools/segment_blocks.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

/// Blocks are cached by size class (small up to 1 MiB, large), stream and memory pool. A request gets the smallest
/// cached block that fits, lowest address among equals. The block is split if the rest is large enough: at least 512 B
/// in small and expandable segments, more than 1 MiB in large ones. On a cache miss, the allocator collects garbage if
/// that is switched on. Then it asks the device for a segment or, in expandable segments, for pages. If the device
/// refuses, the allocator gives back oversize blocks (if a split limit is set), then all whole cached segments, and
/// tries a last time. Source: c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.0 to 2.10, DeviceCachingAllocator::malloc
/// and the functions that it calls.
///
/// A block that other streams have used is freed with free_after(). It counts as in use until poll() finds its events
/// complete, or until release_cached_blocks() waits for them. The replay of a log that records when blocks became free
/// calls free() at these times instead; it may do so from within Device::reserve() and Device::map().
class CachingAllocator {
 public:
  /// Requests get blocks of their own key only. `owner` and `number` name the pool of a captured graph or of the user;
  /// both are 0 for the default pools.
  struct Key {
    std::int64_t owner = 0;
    std::int64_t number = 0;
    bool small = false;
    std::int64_t stream = 0;
    auto operator<=>(const Key&) const = default;
    bool is_private() const { return owner != 0 || number != 0; }
  };
  /// The properties of a request besides its size.
  struct Source {
    std::int64_t stream = 0;
    std::int64_t owner = 0;
    std::int64_t number = 0;
    bool expandable = true;  ///< if expandable segments are switched on, a cache miss may be served from one
  };

  /// @param limit  most reserved bytes; decides the garbage collector's threshold and the size of expandable ranges
  CachingAllocator(const CachingConfig& config, Device& device, Bytes limit);

  /// The key of the blocks that a request of this rounded size gets.
  static Key key_of(Bytes rounded, const Source& source);

  /// A block for a request; none if the device refuses memory for it even after cached segments were given back.
  std::optional<Block> malloc(Bytes requested, const Source& source);
  /// @return whether `address` was in use
  bool free(Bytes address);
  /// Frees a block when the streams that have used it are done; at once if there are none.
  void free_after(Bytes address, std::span<const StreamUse> uses);
  /// Checks the events of free_after(), as PyTorch does before every malloc().
  void poll(Nanos now);
  /// Waits for all events of free_after(). Gives back every whole cached segment and every whole page of cached
  /// expandable blocks (torch.cuda.empty_cache).
  /// @param private_pools  whether to do so for the pools of captured graphs and users instead of the default pools
  void release_cached_blocks(bool private_pools = false);

  /// Whether malloc() would find a cached block.
  bool has_cached(Bytes requested, const Source& source) const;
  /// Size of the block in use at `address` plus the free block behind it; 0 if no block at `address` is in use.
  Bytes room_at(Bytes address) const;
  Bytes reserved() const { return reserved_; }
  /// Bytes of the blocks in use, including remainders too small to be split off.
  Bytes allocated() const { return allocated_; }
  Bytes largest_hole() const;
  const CachingConfig& config() const { return config_; }

  /// Adds a segment to the start state. `used`: the blocks in use, in address order, in the segment, without overlap.
  void adopt_segment(const Key& key, const Block& segment, std::span<const Block> used);
  /// Adds an expandable segment's range of addresses, mapped in part, to the start state. `mapped`: in address order,
  /// disjoint. `used`: as for adopt_segment().
  void adopt_range(const Key& key, const Block& range, std::span<const Block> mapped, std::span<const Block> used);

 private:
  static constexpr std::uint32_t kNone = SegmentBlocks::kNone;
  /// The free blocks of one key.
  struct Cache {
    Key key;
    FreeIndex free;
    std::vector<std::pair<Bytes, std::uint32_t>> unmapped;  // by address
    std::int64_t returnable = 0;  // free blocks that release_family() gives back, whole or in part
  };
  /// Addresses reserved for one expandable segment.
  struct Range {
    Bytes address;
    Bytes size;
    Bytes page;
  };

  std::uint32_t cache_of(const Key& key);
  const Cache* find_cache(const Key& key) const;
  bool collects_garbage() const { return config_.garbage_collection_threshold > 0; }

  FreeIndex::Place choose(const Cache& cache, Bytes size) const;
  std::uint32_t grow(std::uint32_t cache, Bytes size, bool expandable);
  bool should_split(const SegmentBlock& block, Bytes size) const;
  void merge_next(std::uint32_t id);
  std::uint32_t merge_free(std::uint32_t id);
  void insert_free(std::uint32_t id);
  void erase_free(std::uint32_t id);
  void drop_segment(std::uint32_t id);
  void collect_garbage();
  bool release_oversize(std::uint32_t cache, Bytes size);
  void release_family(bool private_pools, bool small);

  // Expandable segments (caching_expandable.cpp).
  Bytes size_with_room(std::uint32_t id) const;
  std::uint32_t grow_expandable(std::uint32_t cache, Bytes size);
  std::uint32_t find_expandable(std::uint32_t cache, Bytes size);
  std::uint32_t map_block(std::uint32_t id, Bytes size);
  void unmap_block(std::uint32_t id);
  void insert_unmapped(std::uint32_t id);
  void erase_unmapped(std::uint32_t id);
  std::uint32_t add_range(std::uint32_t cache, const Block& range);

  CachingConfig config_;
  Device* device_;
  Bytes limit_;
  Bytes reserved_;
  Bytes allocated_;
  SegmentBlocks blocks_;
  AddressMap used_;
  std::vector<Cache> caches_;
  std::vector<std::uint32_t> order_;  // indices into caches_, by key: in each pool, large ones first
  std::vector<Range> ranges_;
  PendingFrees pending_;
  std::int64_t searches_ = 0;  // searches in the large default pool: the clock of the garbage collector
};

}  // namespace tidepool
