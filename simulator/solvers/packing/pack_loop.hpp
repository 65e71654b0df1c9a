// Memory of a training loop: the whole recording under a pool, or the repeated part as a planner places it on a circle
// (periodic.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/solvers/packing/pack.hpp"
#include "simulator/solvers/packing/periodic.hpp"

namespace tidepool {

/// The origin of LoopPacking::bytes.
enum class LoopCount : std::uint8_t {
  kPlanned,   ///< a planner's layout on the circle, the persistent buffers included
  kCounted,   ///< bytes as a pool's authors count them ("counted_bytes" of Pool::counts()), if the pool found, on each
              ///< device with buffers, an iteration as long as that of the device's loop
  kReserved,  ///< any other pool: most bytes reserved (or the largest address used) in the whole recording
};
std::string_view to_text(LoopCount count);

struct LoopPacking {
  Packing packing;  ///< of the circle for a planner, else of the whole recording
  Bytes bytes;
  LoopCount count = LoopCount::kReserved;
  std::optional<std::int64_t> period;  ///< events of the iteration that the pool found by itself, sums over the
                                       ///< devices, 0: it found none; nothing: the pool looks for none
  LoopReplay replay;                   ///< of a planner's layout over all recorded iterations, sums over the devices
};

/// Packs the buffers of every device; sizes are sums over the devices.
/// @param loops     find_loop() of each device of the trace
/// @param segments  see pack()
/// @throws InputError  with the reason, if the pool is a planner and a device has buffers but no loop
LoopPacking pack_loop(const Trace& trace, std::span<const SteadyLoop> loops, const PoolInfo& pool,
                      const Options& options, const PackingLimits& limits, std::span<const Bytes> segments);

/// find_loop() of each device.
std::vector<SteadyLoop> find_loops(const Trace& trace);

}  // namespace tidepool
