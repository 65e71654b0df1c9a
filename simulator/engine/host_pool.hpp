// Host memory that copies from the device go to.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simulator/machine/machine.hpp"

namespace tidepool {

/// Pinned host memory as PyTorch's CachingHostAllocator keeps it (version 2.4): a request gets a block of its size, or
/// of the next power of two; a block that is given back stays pinned and serves a later request of the same power of
/// two; without rounding, any that its bytes are enough for. Pinning takes the host's time, using a block again takes
/// none. Blocks that nobody uses are unpinned, at no cost, when there would otherwise be more pinned than there is room
/// for.
class HostPool {
 public:
  explicit HostPool(const HostMemory& memory) : memory_{memory} {}

  /// What content of this size takes there. At most 2^62.
  static Bytes block(const HostMemory& memory, Bytes size);
  bool fits(Bytes size) const { return block(memory_, size) <= memory_.capacity - in_use_; }
  /// Takes a block, which must fit. @return  how long the host is busy pinning it
  Nanos take(Bytes size);
  void give_back(Bytes size);
  /// Appends to `state` what later answers depend on besides what is in use.
  void record(std::vector<std::int64_t>& state) const;
  Bytes in_use() const { return in_use_; }
  Bytes peak() const { return peak_; }  ///< most that was pinned at once

 private:
  const HostMemory& memory_;
  Bytes in_use_, pinned_, peak_;
  std::array<std::int64_t, 64> idle_{};  ///< pinned blocks that nobody uses, by power of two
};

}  // namespace tidepool
