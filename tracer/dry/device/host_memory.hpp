// Host memory that CUDA knows of: pinned allocations and registered ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace tidepool::dry {

/// Thread safe. "Pinned" memory is ordinary memory here; only its ranges are remembered.
class PinnedMemory {
 public:
  void* allocate(std::size_t bytes);  ///< nullptr: the host has no more memory
  bool free(void* pointer);           ///< false: no range begins there
  /// add() registers a range of the program's own memory. remove() ends this; false: no range begins there.
  void add(void* pointer, std::size_t bytes);
  bool remove(void* pointer);
  bool holds(const void* pointer) const;
  std::uint64_t most() const;  ///< the most bytes at once
  /// Locks the object: calls of other threads wait until the lock is released.
  std::unique_lock<std::mutex> hold() { return std::unique_lock{mutex_}; }

 private:
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> ranges_;
  std::uint64_t bytes_ = 0, most_ = 0;
};

PinnedMemory& pinned_memory();

}  // namespace tidepool::dry
