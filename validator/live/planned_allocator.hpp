// The memory of a live job from a planned layout, for PyTorch's pluggable allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/packing/layout_places.hpp"

namespace tidepool {

using LiveStream = const void*;  ///< a stream of the device, by its handle

/// The source of memory: a device, or the host in tests.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Null if there is not enough memory.
  virtual void* take(Bytes size) = 0;
  /// Frees memory. Work that uses it must end before this returns.
  virtual void give(void* memory, Bytes size) = 0;
  /// Work submitted to `after` from now on waits for all work submitted to `before` so far.
  virtual void order(LiveStream before, LiveStream after) = 0;
};

/// Host memory. Streams are those of the caller's threads, which have ended their work when they free.
class HeapMemory final : public MemorySource {
 public:
  void* take(Bytes size) override;
  void give(void* memory, Bytes size) override;
  void order(LiveStream, LiveStream) override {}
};

/// One arena of height + fallback, in which LayoutPlaces chooses the place of each request. Requests without a place,
/// and those of other streams than the first one that made a request, get memory of their own. Thread-safe.
///
/// Places change hands in the order of the arena's stream. A block that other streams have used (record_use) is handed
/// on only after the arena's stream waits for them.
class PlannedAllocator {
 public:
  struct Report {
    LayoutPlaces::Counts places;  ///< beyond: always 0; those have memory of their own
    std::int64_t resynchronised = 0;
    std::int64_t outside = 0;        ///< requests with memory of their own ...
    Bytes outside_peak;              ///< ... and the most of it at once
    std::int64_t failed = 0;         ///< requests that the source had no memory for
    std::int64_t unknown_frees = 0;  ///< of addresses that nobody has
    Bytes arena;                     ///< 0 until the first request, or if the source does not have it
    bool operator==(const Report&) const = default;
  };

  /// @throws InputError  for sizes and offsets beyond 2^50 B, and places at no multiple of 256 B
  PlannedAllocator(LayoutFile layout, Bytes fallback, MemorySource& source);
  /// Frees the arena. Memory outside of it must have been freed before by its users.
  ~PlannedAllocator();
  PlannedAllocator(const PlannedAllocator&) = delete;
  PlannedAllocator& operator=(const PlannedAllocator&) = delete;

  /// Null for a size of 0, and if there is no memory.
  void* allocate(Bytes size, LiveStream stream);
  void free(void* memory);
  void record_use(void* memory, LiveStream stream);
  Report report() const;

 private:
  struct Held {
    Block block;  ///< in the arena; of memory of its own, only the size
    bool in_arena = false;
    LiveStream stream = nullptr;
    std::vector<LiveStream> users;  ///< other streams
  };

  void* place(Bytes size);

  mutable std::mutex mutex_;
  MemorySource& source_;
  LayoutPlaces places_;
  std::byte* arena_ = nullptr;
  bool asked_ = false;  ///< for the arena
  LiveStream stream_ = nullptr;
  std::unordered_map<void*, Held> held_;
  Bytes outside_;
  Report report_;
};

/// {"planned":12,"fallback":0,...}
std::string to_json(const PlannedAllocator::Report& report);

}  // namespace tidepool
