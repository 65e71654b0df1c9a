// The memory of a live job from a planned layout: what PyTorch's pluggable allocator asks for.
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

/// Where the memory comes from: a device, or the host in its place.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Null if there is not so much.
  virtual void* take(Bytes size) = 0;
  /// No work that uses it may be under way afterwards.
  virtual void give(void* memory, Bytes size) = 0;
  /// What is submitted to `after` from now on waits for what has been submitted to `before` so far.
  virtual void order(LiveStream before, LiveStream after) = 0;
};

/// Host memory. Streams are those of the caller's threads, which have ended their work when they free.
class HeapMemory final : public MemorySource {
 public:
  void* take(Bytes size) override;
  void give(void* memory, Bytes size) override;
  void order(LiveStream, LiveStream) override {}
};

/// One arena of height + fallback, in which LayoutPlaces says where each request goes; whatever finds no place there,
/// and requests of other streams than the first one that asked, get memory of their own. Thread-safe.
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
  /// Gives the arena back. Memory outside of it is its users' to free before.
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
