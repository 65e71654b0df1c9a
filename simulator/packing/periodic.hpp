// Packing without a cut: what a training loop allocates, on the circle of its iteration.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/packing/instance.hpp"

namespace tidepool {

/// The part of a trace in which every iteration allocates and frees the same. Events are the allocs and frees of one
/// device, counted from 0.
struct SteadyLoop {
  /// Allocated in every iteration: [birth, birth + life) in events after its beginning. May live longer than one.
  struct Arc {
    Bytes size;
    std::int64_t birth = 0;
    std::int64_t life = 0;
    bool operator==(const Arc&) const = default;
  };

  std::int64_t length = 0;  ///< events of an iteration; 0: the trace has no such part
  std::int64_t first = 0;   ///< the part is [first, last)
  std::int64_t last = 0;
  std::vector<Arc> arcs;                   ///< by birth
  std::vector<std::uint32_t> persistent;   ///< buffers that live before and after the whole part
  std::vector<std::uint32_t> left_behind;  ///< buffers of its first iteration that are not freed in it: a leak, or the
                                           ///< part is too short; a loop that has any cannot be planned

  bool found() const { return length > 0 && left_behind.empty(); }
  /// Iterations after which the places repeat: as many as the longest life touches.
  std::int64_t copies() const;
};

/// The loop of a device: the longest run of the shortest period that find_period sees in the string of (alloc, size)
/// and (free, size, age). O(n).
SteadyLoop find_loop(const Trace& trace, std::uint16_t device);

/// Every buffer of copies() iterations, and then the persistent ones. Positions are events on a circle of copies() *
/// length: what lives over the end is an item with two intervals, so a layout serves every iteration, whatever event it
/// is said to begin with, and nothing is reserved twice. Item k * arcs + i is arc i in iterations k, k + copies(), ...
/// The persistent ones are fixed at the bottom, one above the other: nothing can lie across them, so a layout that has
/// them elsewhere stays as high if they are taken out and all that was above them moves down.
/// @param alignment  sizes (at least one granule each) and offsets are multiples of it
Instance on_circle(const SteadyLoop& loop, const Trace& trace, Bytes alignment);

/// What serving the rest of the loop from a layout came to.
struct LoopReplay {
  std::int64_t served = 0;    ///< allocs that got their planned place
  std::int64_t misses = 0;    ///< allocs that the layout does not know, or of another size
  std::int64_t overlaps = 0;  ///< allocs whose place was in use: a mistake of the layout
  bool operator==(const LoopReplay&) const = default;
};

/// Walks over all events of the loop and gives every alloc its place in the layout of on_circle().
LoopReplay replay_loop(const Trace& trace, std::uint16_t device, const SteadyLoop& loop, const Instance& instance,
                       std::span<const Bytes> offsets);

}  // namespace tidepool
