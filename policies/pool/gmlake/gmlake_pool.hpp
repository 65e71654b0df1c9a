// GMLake: PyTorch's caching allocator with memory in pages that can be stitched together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "simulator/engine/pools/caching_allocator.hpp"
#include "simulator/engine/pools/pending_frees.hpp"
#include "simulator/pool.hpp"

namespace tidepool {

struct GmLakeConfig {
  Bytes fragment_limit{512 << 20};           ///< requests of this size or more are stitched
  double reuse_limit = 10;                   ///< a stitched block serves requests of at least its size divided by this
  int defragment_level = 0;                  ///< stitch 0: at once; 1: if the device refuses; 2: if it refuses
                                             ///< even after cached blocks were released
  Bytes auto_gc{std::int64_t{1'000} << 30};  ///< if stitched blocks are larger in total, free ones are dropped
};

/// Small requests (up to 1 MiB) are served as PyTorch does. Large ones are multiples of 2 MiB, the page of the device,
/// and their segments consist of such pages; free blocks are split where 2 MiB or more remain. A large request gets
///   1. the smallest free block of its stream that fits, lowest address among equals; else
///   2. the smallest stitched block of its stream all of whose pages are free, if it is at most reuse_limit times as
///      large; the request takes its first pages, and the blocks of these pages are split where the use ends; else
///   3. from fragment_limit on (at defragment_level 0), a new stitched block: addresses that show the pages of its
///      stream's free blocks, largest first, the last one in part; there must be two free blocks at least; else
///   4. a segment of 20 MiB, or of its own size from 10 MiB on; when the device refuses, 3. (unless defragment_level is
///      2); then all whole free segments are released, and 4. and 3. are tried once more.
/// A stitched block stays when it is freed; its pages become free. Giving a segment back drops the stitched blocks that
/// show it; one in use is dropped when this use ends. Source: intelligent-machine-learning/glake,
/// GMLake/src/CUDACachingAllocator.cpp and GMLake/include/cuda_vmm_allocator.h at 392d840, with the defaults of its
/// settings. PyTorch's own options are left out.
class GmLake {
 public:
  static constexpr Bytes kPage{2 << 20};
  static constexpr Bytes kMostReserved{std::int64_t{4} << 40};  ///< two million pages: a second, and 200 MiB

  GmLake(const GmLakeConfig& config, Device& device, Bytes limit);

  /// @throws InputError  if the segments would exceed kMostReserved
  std::optional<Block> malloc(Bytes requested, std::int64_t stream, Nanos now);
  /// @param done  time at which the block's own stream no longer uses it
  /// @return whether `address` was in use
  bool free(Bytes address, Nanos done);
  /// Frees the block when the streams that have used it no longer do; see CachingAllocator.
  void free_after(Bytes address, std::span<const StreamUse> uses, Nanos done);
  /// Frees the blocks of free_after() whose streams no longer use them at `now`.
  void poll(Nanos now);
  /// Waits for the events of free_after() and releases all whole free segments.
  void release_cached_blocks();

  Bytes largest_hole() const;
  /// Number of stitched blocks, in use or not.
  std::size_t stitched() const { return stitched_.size() - spare_stitched_.size(); }

 private:
  static constexpr std::uint32_t kNone = SegmentBlocks::kNone;
  /// A page of memory, identified by its own address.
  struct Page {
    bool used = false;
    std::vector<std::uint32_t> shown_by;  // numbers of the stitched blocks that contain it
  };
  struct Stitched {
    Bytes address;  // of its own
    std::int64_t stream = 0;
    std::vector<Bytes> pages;  // their own addresses; empty if the block was released
    std::size_t used = 0;      // number of its first pages that are in use as this block; 0: it is free
    std::size_t busy = 0;      // number of its pages in use as any block
    std::int64_t freed = 0;    // position in the order of frees
    Nanos done;
    bool doomed = false;  // it lost a page while it was in use
    bool exists = true;
    bool available() const { return used == 0 && busy == 0; }
    Bytes size() const { return kPage * static_cast<std::int64_t>(pages.size()); }
  };
  struct Cache {
    FreeIndex blocks;
    FreeIndex stitched;
  };

  std::optional<Block> take_block(Bytes size, std::int64_t stream);
  std::optional<Block> take_stitched(Bytes size, std::int64_t stream);
  std::optional<Block> stitch(Bytes size, std::int64_t stream, Nanos now);
  std::optional<Block> take_segment(Bytes size, std::int64_t stream);

  std::uint32_t block_at(Bytes address) const { return std::prev(by_address_.upper_bound(address))->second; }
  std::uint32_t occupy(Bytes address, Bytes size);
  void vacate(std::uint32_t id);
  std::uint32_t split(std::uint32_t id, Bytes size);
  void insert_free(std::uint32_t id);
  void erase_free(std::uint32_t id);
  void mark(Bytes address, Bytes size, bool used);
  void index(std::uint32_t stitched, bool available);
  void drop_segment(std::uint32_t id);
  void drop_stitched(std::uint32_t id);
  void show_pages(const Stitched& block);
  void collect_stitched(Nanos now);
  Cache& cache_of(std::uint32_t id) { return caches_[streams_[blocks_[id].pool]]; }

  GmLakeConfig config_;
  Device* device_;
  Bytes limit_, reserved_;
  CachingAllocator small_;
  PendingFrees pending_;
  SegmentBlocks blocks_;                       // of large segments
  std::map<Bytes, std::uint32_t> by_address_;  // all of blocks_
  std::map<Bytes, Page> pages_;
  std::map<std::int64_t, Cache> caches_;  // by stream
  std::vector<std::int64_t> streams_;     // SegmentBlock::pool to stream
  AddressMap used_, used_stitched_;       // blocks in use by the program
  std::vector<Stitched> stitched_;
  std::vector<std::uint32_t> spare_stitched_;
  Bytes total_stitched_;
  std::int64_t frees_ = 0;
};

}  // namespace tidepool
