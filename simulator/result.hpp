// Outcome, costs and plan of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "simulator/plan.hpp"
#include "traces/quantity.hpp"

namespace tidepool {

enum class Outcome : std::uint8_t { kOk, kOutOfMemory, kInfeasible, kTimeLimit, kError };
std::string_view to_text(Outcome outcome);
/// The outcome with this text. @throws InputError  for any other text
Outcome find_outcome(std::string_view text);

/// Time that lanes spent waiting although they had something to do.
struct Stall {
  Nanos compute;  ///< compute lanes waited for anything
  Nanos h2d;      ///< ... of it for content coming from the host
  Nanos d2h;      ///< ... of it for a place that a copy to the host had not left yet
  Nanos memory;   ///< ... of it for the device's allocator (cudaMalloc, cudaFree)
  bool operator==(const Stall&) const = default;
};

/// What a plan costs. The simulated timeline computes it from the actions alone. In the steady state, times, copied
/// bytes and counts are the sums over a cycle of iterations divided by its length, rounded to the nearest whole number;
/// peaks and `actions` are those of all iterations that ran.
struct Totals {
  Nanos makespan;
  Bytes peak;       ///< largest sum of bytes held by versions
  Bytes footprint;  ///< largest address in use, or most reserved segments
  Nanos recompute;
  std::int64_t recompute_count = 0;
  std::int64_t eviction_count = 0;
  Bytes swap_out, swap_in;
  Stall stall;
  std::int64_t actions = 0;
  Nanos slowdown;      ///< what kernels took longer because data moved
  Bytes host_peak;     ///< most host memory that was pinned at once for copies
  Bytes storage_peak;  ///< most storage that held copies at once
  bool operator==(const Totals&) const = default;
};

/// Iterations that a run has come to, and those that its times and counts are means of: the cycle between two equal
/// states, see Boundary. If only addresses differ and costs do, too, it is the longest such cycle in the last half.
struct Cycle {
  int iterations = 1;     ///< times and counts are means over the last so many, as Totals says
  int lead_in = 0;        ///< iterations before those
  bool settled = true;    ///< the state has come back; false: it has not, these are the last half, two at least
  Nanos first_iteration;  ///< time of the first iteration
  Bytes start_on_host;    ///< content from before the step that the first iteration found on the host only
};

struct Result {
  Outcome outcome = Outcome::kOk;
  std::string message;  ///< why, unless ok
  Totals totals;        ///< up to where the run came; complete only if ok
  Nanos baseline;       ///< time of the step without policy and limit
  Cycle cycle;          ///< what the totals are means over
  Plan realised;        ///< empty unless asked for
  std::int64_t cost_evaluations = 0;
  Nanos plan_time;                        ///< wall time of planning and running, without the replay
  std::int64_t evicting_allocations = 0;  ///< places for which policies had to make room
  /// What of the capacity lay free when such a place had been found, without the place itself, on average: what Coop's
  /// authors call fragmentation. 0 without such places.
  double eviction_fragmentation = 0;
  /// Wall time of the policies' answers and bookkeeping in an iteration, if asked for. The host decides while the
  /// device waits, so a step takes totals.makespan + search. Plans made before the step are not counted.
  std::optional<Nanos> search;
};

}  // namespace tidepool
