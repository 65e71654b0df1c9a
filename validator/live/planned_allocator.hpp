// The memory of a live job from a planned layout, for PyTorch's pluggable allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/solvers/packing/layout_places.hpp"

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

/// Host memory. Streams are those of the caller's threads, whose work has ended when they free memory.
class HeapMemory final : public MemorySource {
 public:
  void* take(Bytes size) override;
  void give(void* memory, Bytes size) override;
  void order(LiveStream, LiveStream) override {}
};

/// One arena of height + fallback, in which LayoutPlaces chooses the place of each request. The first request decides
/// the arena's stream. Requests without a place, and requests of other streams, get separate memory. Thread-safe.
///
/// A freed place is reused at once, because the work of the arena's stream runs in order. If other streams have used
/// the block (record_use), the arena's stream first waits for them.
class PlannedAllocator {
 public:
  struct Report {
    LayoutPlaces::Counts places;      ///< beyond: always 0, since such requests get separate memory
    std::int64_t resynchronised = 0;  ///< see LayoutPlaces::resynchronised()
    std::int64_t outside = 0;         ///< requests with separate memory
    Bytes outside_peak;               ///< largest sum of separate memory at one time
    std::int64_t failed = 0;          ///< requests that the source had no memory for
    std::int64_t unknown_frees = 0;   ///< frees of unknown addresses
    Bytes arena;                      ///< its size, also before the first request; 0 if the source refused it
    bool operator==(const Report&) const = default;
  };

  /// @throws InputError  for sizes and offsets beyond 2^50 B and, unless the arena is empty, an alignment or an offset
  ///                     that is no multiple of 256 B
  PlannedAllocator(LayoutFile layout, Bytes fallback, MemorySource& source);
  /// Frees the arena. Its users must have freed the memory outside of it before.
  ~PlannedAllocator();
  PlannedAllocator(const PlannedAllocator&) = delete;
  PlannedAllocator& operator=(const PlannedAllocator&) = delete;

  /// Null for a size of 0, and if there is no memory.
  void* allocate(Bytes size, LiveStream stream);
  /// Separate memory for a request of a stream that never gets the arena, as those of other devices. Null as above.
  void* allocate_outside(Bytes size, LiveStream stream);
  void free(void* memory);  ///< ignores null
  /// Work of `stream` uses the block that begins at `memory`, as Tensor.record_stream() reports it.
  void record_use(void* memory, LiveStream stream);
  Report report() const;

 private:
  struct Held {
    Block block;  ///< in the arena; for separate memory, only the size
    bool in_arena = false;
    LiveStream stream = nullptr;
    std::vector<LiveStream> users;  ///< other streams that have used the block
  };

  void* place(Bytes size);
  void* take_outside(Bytes size, LiveStream stream);

  mutable std::mutex mutex_;
  MemorySource& source_;
  LayoutPlaces places_;
  std::byte* arena_ = nullptr;
  bool asked_ = false;  ///< whether the arena was requested
  LiveStream stream_ = nullptr;
  std::unordered_map<void*, Held> held_;
  Bytes outside_;
  Report report_;
};

/// {"planned":12,"fallback":0,...}
std::string to_json(const PlannedAllocator::Report& report);

}  // namespace tidepool
