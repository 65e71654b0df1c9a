// Packing of a training loop: the buffers of an iteration on a circle, without a first or a last event.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/instance.hpp"

namespace tidepool {

/// The part of a trace in which all iterations have the same allocs and frees. Events are the allocs and frees of one
/// device, counted from 0.
struct SteadyLoop {
  /// A buffer of every iteration: it lives for [birth, birth + life) in events after the iteration's beginning,
  /// possibly for longer than one iteration.
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
  std::vector<std::uint32_t> left_behind;  ///< buffers of the first iteration that the part does not free: a leak, or
                                           ///< the part is too short; a loop that has any cannot be planned

  bool found() const { return length > 0 && left_behind.empty(); }
  /// Number of iterations after which the places repeat: the longest life in iterations, rounded up.
  std::int64_t copies() const;
};

/// The loop of a device: the longest run of the shortest period that find_period sees in the string of (alloc, size)
/// and (free, size, age). O(n log n) for n events.
SteadyLoop find_loop(const Trace& trace, std::uint16_t device);

/// An instance of all buffers of copies() iterations, and then the persistent ones. Positions are events on a circle of
/// copies() * length. A buffer that lives across the end of the circle is an item with two intervals; so a layout
/// serves every iteration, whichever event is the first. Item k * arcs + i is arc i in iterations k, k + copies(), ...
/// The persistent buffers are fixed at the bottom, one above the other. This loses nothing: in any layout, they can
/// move to the bottom, and the buffers below them up by the same distance.
/// @param alignment  offsets are multiples of it; sizes are rounded up to multiples of it, and are not 0
Instance on_circle(const SteadyLoop& loop, const Trace& trace, Bytes alignment);

/// Counts of a replay of the loop from a layout.
struct LoopReplay {
  std::int64_t served = 0;    ///< buffers that got their planned place
  std::int64_t misses = 0;    ///< buffers that are not in the layout, or are there with another size
  std::int64_t overlaps = 0;  ///< buffers whose place was in use: a mistake of the layout
  bool operator==(const LoopReplay&) const = default;
};

/// Walks over all events of the loop, and gives every buffer that lives at its beginning or is allocated later its
/// place in the layout of on_circle().
LoopReplay replay_loop(const Trace& trace, std::uint16_t device, const SteadyLoop& loop, const Instance& instance,
                       std::span<const Bytes> offsets);

}  // namespace tidepool
