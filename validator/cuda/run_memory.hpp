// Memory that consecutive runs share.
#pragma once

#include <optional>

#include "validator/cuda/device.hpp"

namespace tidepool::cuda {

/// One piece of device memory and one of pinned host memory. A run that needs no more than an earlier run uses the
/// same memory, since pinning gigabytes takes longer than many steps. The memory keeps its content between runs. A run
/// that needs memory that was never written must use a new object.
class RunMemory {
 public:
  explicit RunMemory(const Gpu& gpu) : gpu_{gpu} {}

  /// At least `size` bytes; smaller memory from an earlier call is released. @throws Error  as allocate()
  Address arena(Bytes size);
  /// As arena(), on the host. @throws Error  as allocate_pinned()
  void* pinned(Bytes size);

 private:
  const Gpu& gpu_;
  Bytes arena_size_, pinned_size_;
  std::optional<Owned<Address>> arena_;
  std::optional<Owned<void*>> pinned_;
};

}  // namespace tidepool::cuda
