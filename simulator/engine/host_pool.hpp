// Pinned host memory, the destination of copies from the device.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simulator/machine.hpp"

namespace tidepool {

/// A model of PyTorch's CachingHostAllocator (version 2.4). A request gets a block of its size, or of the next power of
/// two. A freed block stays pinned and serves a later request of the same power of two. Without rounding, freed bytes
/// serve any later request, and only the missing bytes are pinned. Pinning takes time of the host; reuse takes none.
/// Unused blocks are unpinned, at no cost, if the pinned memory would otherwise exceed its limit.
class HostPool {
 public:
  explicit HostPool(const HostMemory& memory) : memory_{memory} {}

  /// Bytes of the block for content of this size. At most 2^62.
  static Bytes block(const HostMemory& memory, Bytes size);
  bool fits(Bytes size) const { return block(memory_, size) <= memory_.capacity - in_use_; }
  /// Takes a block, which must fit. @return  time that the host needs to pin it
  Nanos take(Bytes size);
  void give_back(Bytes size);
  /// Appends the pinned bytes and the unused blocks to `state` if pinning takes time: later answers depend on them.
  void record(std::vector<std::int64_t>& state) const;
  Bytes in_use() const { return in_use_; }
  Bytes peak() const { return peak_; }  ///< most that was pinned at once

 private:
  const HostMemory& memory_;
  Bytes in_use_, pinned_, peak_;
  std::array<std::int64_t, 64> idle_{};  ///< unused pinned blocks, by power of two
};

}  // namespace tidepool
