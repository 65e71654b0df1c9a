// Storage beyond the host: NVMe drives.
#pragma once

#include <algorithm>

#include "simulator/machine.hpp"

namespace tidepool {

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
