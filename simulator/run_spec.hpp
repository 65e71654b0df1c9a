// Setting of a run: pool, policies, capacity, machine, and what a paper assumed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/machine/machine.hpp"
#include "simulator/options.hpp"
#include "traces/trace.hpp"

namespace tidepool {

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

/// The trace's peak under the assumptions: ideal_peak() unless in-place writes are copies.
Bytes ideal_peak(const Trace& trace, const Assumptions& assume);

inline constexpr Bytes kNoLimit{std::int64_t{1} << 62};

/// Everything that a run depends on besides the trace.
struct RunSpec {
  Spec pool = "best-fit";
  PolicyChain policy = "none";
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

}  // namespace tidepool
