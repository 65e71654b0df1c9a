// One run: a trace under one pool and a chain of policies, at one capacity, on one machine.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/machine/machine.hpp"
#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

class Policy;

/// What one paper's own simulator assumed. All off: the strict model.
struct Assumptions {
  std::string name;            ///< "" or the name given to --assume
  bool copy_on_write = false;  ///< an in-place write gets a place of its own; the old version lives on until forgotten
  bool replay_views = false;   ///< evicting a version undefines its views, and each must be run again
  bool keep_recomputed = false;  ///< a version recomputed for others stays until it is chosen, although the program has
                                 ///< freed it
  bool pin_sources = false;      ///< sources and what existed before are never evicted
  Nanos clock_start;             ///< the clock does not start at 0

  /// @throws InputError  for an unknown name
  static Assumptions find(const std::string& name);
};

inline constexpr Bytes kNoLimit{std::int64_t{1} << 62};

struct RunSpec {
  std::string pool = "best-fit";  ///< "name" or "name(key=value)"
  std::string policy = "none";    ///< chain "a+b(key=value)"
  Bytes capacity = kNoLimit;
  Machine machine = {};
  std::uint64_t seed = 1;
  Assumptions assume = {};
  /// Ends the run when recomputation and stalls exceed (limit - 1) * baseline; none: only more than 10^6 + ops^2 runs
  /// again in one iteration end it. A policy that thrashes recomputes for ages, so there is a limit unless taken away.
  std::optional<double> overhead_limit = 10.0;
  /// Whether times and counts are those of the steady state: means over the cycle that the run settles into when the
  /// step is repeated, see Cycle. Otherwise they are of the last of `iterations`.
  bool steady = false;
  int iterations = 1;  ///< the step is run this often, one after the other; if `steady`, at most, to find the cycle
  bool count_search = false;  ///< measure what policies take to decide during the run, see Result::search
};

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

/// What a spec names, apart from options, and the canonical text of the options that differ from their defaults.
struct SpecNames {
  std::string pool;     ///< "best-fit"
  std::string policy;   ///< "autoswap+coop"
  std::string options;  ///< "pytorch(segments=expandable) coop(partition=off)"
  bool operator==(const SpecNames&) const = default;
};

/// @throws InputError  for an unknown pool, policy or option
SpecNames names_of(const RunSpec& spec);

/// Runs `trace` under `spec`; what is ok has passed replay(). Deterministic. Out of memory, time limit are outcomes.
/// @param keep_plan  whether Result::realised is wanted
/// @throws InputError  for an unknown pool, policy or option
/// @throws PlanError   if a policy asks for what cannot be done
Result simulate(const Trace& trace, const RunSpec& spec, bool keep_plan = false);

/// The same under these policies instead of those that the spec names: for planners that try what they might answer.
/// @param may_swap    whether what existed before the step may begin on the host
/// @param matters_to  the longest makespan that is of interest: a longer run is ok without having passed replay()
Result simulate_under(const Trace& trace, const RunSpec& spec, std::vector<std::unique_ptr<Policy>> policies,
                      bool may_swap, bool keep_plan = false, std::optional<Nanos> matters_to = {});

/// Executes `plan` as it stands and checks every action: no overlap of live places, nothing beyond the capacity, no use
/// of what is not there. Clocks in ns, sizes in bytes, equal to what simulate() reported if it made this plan.
/// @throws PlanError  naming the action and the reason, as in "alloc version 7 before op 12: it would overlap version
/// 3"
Totals replay(const Trace& trace, const RunSpec& spec, const Plan& plan);

/// Time of the step when nothing is ever in the way: every op on its stream as soon as its inputs are there and the
/// host has launched it, which takes `launch` for each.
Nanos baseline_time(const Trace& trace, Nanos launch);

/// The trace's peak under the assumptions: ideal_peak() unless in-place writes are copies.
Bytes ideal_peak(const Trace& trace, const Assumptions& assume);

/// Reads "0.5x" or "50%", a share of the peak; none if the text has neither unit.
/// @throws InputError  "'-1x' is not a share of the peak; expected a number and x or %, as in 0.5x"
std::optional<double> parse_share(std::string_view text);

/// Reads "16GiB", "0.5x" or "50%" (of `ideal_peak`), or "none".
Bytes parse_capacity(std::string_view text, Bytes ideal_peak);

}  // namespace tidepool
