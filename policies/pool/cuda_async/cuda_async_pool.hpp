// CUDA's stream-ordered memory pool (cudaMallocAsync), as far as it is documented.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "simulator/engine/pools/free_index.hpp"
#include "simulator/engine/pools/segment_blocks.hpp"
#include "simulator/pool.hpp"
#include "traces/step/stream_order.hpp"

namespace tidepool {

struct CudaAsyncConfig {
  Bytes release_threshold;                ///< cudaMemPoolAttrReleaseThreshold
  bool follow_event_dependencies = true;  ///< cudaMemPoolReuseFollowEventDependencies
  bool opportunistic = true;              ///< cudaMemPoolReuseAllowOpportunistic
  bool internal_dependencies = true;      ///< cudaMemPoolReuseAllowInternalDependencies
  Bytes granule{32 << 20};                ///< memory is taken from the device in its multiples; assumed
};

/// A block is freed in its stream's order: from then on it serves requests of the same stream. It serves a request of
/// another stream
///   - if that stream has waited, by events, for the freeing stream beyond the free (follow_event_dependencies),
///   - once the freeing stream has passed the free (opportunistic), or when the host next waits for the device.
/// Otherwise the pool takes more memory from the device. If the device refuses, memory that is not in use is released,
/// and then the request gets a block whose free is still to come, and waits for it (internal_dependencies). Blocks that
/// several streams have used are freed, as in PyTorch's backend, in a stream of their own after all of these streams.
/// When the host waits for the device, the pool releases unused memory until at most release_threshold is reserved.
/// Source: CUDA programming guide, stream-ordered memory allocator, and the runtime API's cudaMemPoolAttr.
///
/// Not documented, and assumed here: the smallest block that fits is taken, lowest address among equals, in multiples
/// of 512 B; blocks merge when nothing of them is pending, or when they were freed in one stream; memory is taken in
/// multiples of `granule`, and released in the pieces in which it was taken, lowest address first.
class CudaAsync {
 public:
  static constexpr Bytes kAlignment{512};

  CudaAsync(const CudaAsyncConfig& config, const Trace& trace, Device& device, Bytes limit);

  std::optional<Block> malloc(const Request& request);
  /// Frees a block without pending uses: it can serve any stream at once.
  void free(Bytes address);
  /// Frees a block in the order of the departure's stream, or after all streams that have used it.
  void free_async(Bytes address, const Departure& departure);
  /// The host has waited for the device until `now`.
  void synchronized(Nanos now);
  Bytes largest_hole() const;

 private:
  static constexpr std::uint32_t kNone = SegmentBlocks::kNone;
  static constexpr std::uint32_t kClean = 0;  ///< SegmentBlock::pool of free blocks with nothing pending
  /// The pending uses of a free block.
  struct Free {
    std::uint32_t point = 0;  ///< StreamOrder::issued() of its stream
    Nanos done;
  };

  std::uint32_t find(Bytes size, StreamId stream, bool all) const;
  std::uint32_t grow(Bytes size);
  bool give_back(Bytes most);
  void clean(Nanos now);
  void put(std::uint32_t id, std::uint32_t queue, const Free& free);
  void insert(std::uint32_t id, const Free& free);
  void erase(std::uint32_t id);
  bool joins(std::uint32_t a, std::uint32_t b) const;
  /// Queues are: kClean, one for each stream, and one for blocks that several streams have used.
  std::uint32_t queue_of(StreamId stream) const { return stream.value() + 1; }

  CudaAsyncConfig config_;
  Device* device_;
  Bytes limit_, reserved_;
  StreamOrder order_;
  SegmentBlocks blocks_;
  std::vector<Free> free_;  // by block
  std::vector<FreeIndex> queues_;
  std::set<std::pair<Nanos, std::uint32_t>> pending_;  // free blocks with pending uses, by the end of these
  AddressMap used_;
};

}  // namespace tidepool
