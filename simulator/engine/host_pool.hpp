// Where copies from the device go: pinned host memory, and storage beyond it (NVMe drives).
#pragma once

#include <algorithm>
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

/// Storage for copies that do not fit into host memory; data goes straight from the device and back. One queue for
/// writes and one for reads; neither shares anything with the link to the host. Copies are not cut into pieces.
class StorageTier {
 public:
  StorageTier(const Storage& storage, Nanos start) : storage_{storage}, written_{start}, read_{start} {}

  bool fits(Bytes size) const { return size <= storage_.capacity - in_use_; }
  /// Takes bytes, which must be free. @return  end of a write that may begin at `from`
  Nanos write(Bytes size, Nanos from) {
    in_use_ += size;
    peak_ = std::max(peak_, in_use_);
    return written_ = std::max(written_, from) + storage_.write.time(size);
  }
  /// @return  end of a read that may begin at `from`
  Nanos read(Bytes size, Nanos from) { return read_ = std::max(read_, from) + storage_.read.time(size); }
  void give_back(Bytes size) { in_use_ -= size; }

  Bytes in_use() const { return in_use_; }
  Bytes peak() const { return peak_; }        ///< most that was in use at once
  Nanos written() const { return written_; }  ///< end of the last copy to it
  Nanos read() const { return read_; }        ///< end of the last copy from it
  Nanos drained() const { return std::max(written_, read_); }

 private:
  const Storage& storage_;
  Bytes in_use_, peak_;
  Nanos written_, read_;  ///< ends of the last copies
};

}  // namespace tidepool
