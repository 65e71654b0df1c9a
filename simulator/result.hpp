// Outcome, costs and plan of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "simulator/plan.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

enum class Outcome : std::uint8_t { kOk, kOutOfMemory, kInfeasible, kTimeLimit, kError };
std::string_view to_text(Outcome outcome);
/// The outcome with this text. @throws InputError  for any other text
Outcome find_outcome(std::string_view text);

/// Time in which lanes had work but waited.
struct Stall {
  Nanos compute;  ///< compute lanes waited for anything
  Nanos h2d;      ///< part of `compute`: for content coming from the host
  Nanos d2h;      ///< part of `compute`: for a place that a copy to the host, or another stream, still uses
  Nanos memory;   ///< not in `compute`: costs of calls to the device's allocator (cudaMalloc, cudaFree)
  bool operator==(const Stall&) const = default;
};

/// The cost of a plan. The simulated timeline computes it from the actions alone. In the steady state, times, copied
/// bytes and counts are the sums over a cycle of iterations divided by its length, rounded to the nearest whole number;
/// peaks and `actions` are those of all iterations that ran.
struct Totals {
  Nanos makespan;
  Bytes peak;       ///< largest sum of bytes held by versions
  Bytes footprint;  ///< largest address in use, or most bytes reserved at once
  Nanos recompute;
  std::int64_t recompute_count = 0;
  std::int64_t eviction_count = 0;
  Bytes swap_out, swap_in;
  Stall stall;
  std::int64_t actions = 0;
  Nanos slowdown;      ///< extra time of kernels because data moved
  Bytes host_peak;     ///< most host memory that was pinned at once for copies
  Bytes storage_peak;  ///< most storage that held copies at once
  bool operator==(const Totals&) const = default;
};

/// The iterations over which times and counts are means: the cycle between two equal states, see Boundary. If addresses
/// and costs never recur, it is the longest cycle in the last half of the iterations between two states that are equal
/// except for addresses.
struct Cycle {
  int iterations = 1;   ///< length of the cycle, which ends with the last iteration
  int lead_in = 0;      ///< iterations before these
  bool settled = true;  ///< the state has recurred; false: the means are over the last half, or at least two iterations
  Nanos first_iteration;  ///< time of the first iteration
  Bytes start_on_host;    ///< content from before the step that is only on the host when the first iteration begins
};

struct Result {
  Outcome outcome = Outcome::kOk;
  std::string message;  ///< the reason, unless ok
  Totals totals;        ///< up to the end of the run; complete only if ok
  Nanos baseline;       ///< time of the step without policy and limit
  Cycle cycle;          ///< the iterations over which the totals are means
  Plan realised;        ///< empty unless asked for
  std::int64_t cost_evaluations = 0;
  Nanos plan_time;                        ///< wall time of planning and running, without the replay
  std::int64_t evicting_allocations = 0;  ///< requests that got a place only after policies made room
  /// Mean share of the capacity that was still free after such a request got its place (Coop's authors call this
  /// fragmentation). 0 without such requests.
  double eviction_fragmentation = 0;
  /// Wall time of the policies' decisions and bookkeeping in an iteration, if measured. The host decides while the
  /// device waits, so a step takes totals.makespan + search. Plans made before the step are not counted.
  std::optional<Nanos> search;
};

/// The measurements of one execution of a run's plan.
struct MeasuredRun {
  std::string run_key, backend;
  std::string device = {};  ///< "NVIDIA H200", "" for the host
  std::int64_t repeat = 1;  ///< 1, 2, ...: the number among the executions of the same plan by the same device
  std::string outcome = "ok", message = {};
  std::optional<Nanos> predicted = {}, measured = {};  ///< time of the whole plan with all its iterations
  std::optional<Bytes> peak = {}, corrupt = {};
};

}  // namespace tidepool
