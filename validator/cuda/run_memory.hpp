// The memory of runs that follow each other.
#pragma once

#include <optional>

#include "validator/cuda/device.hpp"

namespace tidepool::cuda {

/// One piece of device memory and one of pinned host memory. A run that needs no more than the run before finds both
/// there: to pin gigabytes takes longer than many a step. Content stays, so who looks for memory that nobody has written
/// begins with a new one.
class RunMemory {
 public:
  explicit RunMemory(const Gpu& gpu) : gpu_{gpu} {}

  /// At least `size` bytes; what was given before is gone if that was less. @throws Error  as allocate()
  Address arena(Bytes size);
  /// The same on the host. @throws Error  as allocate_pinned()
  void* pinned(Bytes size);

 private:
  const Gpu& gpu_;
  Bytes arena_size_, pinned_size_;
  std::optional<Owned<Address>> arena_;
  std::optional<Owned<void*>> pinned_;
};

}  // namespace tidepool::cuda
