// Settings of a run: pool, policies, capacity, machine, and the assumptions of a paper.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/machine.hpp"
#include "simulator/options.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The assumptions of one paper's own simulator. All off: the strict model.
struct Assumptions {
  std::string name;              ///< "" or the name given to --assume
  bool copy_on_write = false;    ///< an in-place write gets a place of its own; the old version lives until kForget
  bool replay_views = false;     ///< evicting a version undefines its views, and each view must run again
  bool keep_recomputed = false;  ///< a version recomputed for others stays until a policy evicts it, although the
                                 ///< program has freed it
  bool pin_sources = false;      ///< outputs of source ops and versions from before the step are never evicted
  Nanos clock_start;             ///< value of the clock at the start of the run

  /// @throws InputError  for an unknown name
  static Assumptions find(const std::string& name);
};

/// The trace's peak under the assumptions: Trace::ideal_peak() unless in-place writes are copies.
Bytes ideal_peak(const Trace& trace, const Assumptions& assume);

inline constexpr Bytes kNoLimit{std::int64_t{1} << 62};

/// All inputs of a run besides the trace.
struct RunSpec {
  Spec pool = "best-fit";
  PolicyChain policy = "none";
  Bytes capacity = kNoLimit;
  Machine machine = {};
  std::uint64_t seed = 1;
  Assumptions assume = {};
  /// The run ends when Timeline::overhead() exceeds (limit - 1) * baseline. None: the run only ends after more than
  /// 10^6 + ops^2 reruns in one iteration. A policy that thrashes recomputes for very long, so the default is a limit.
  std::optional<double> overhead_limit = 10.0;
  /// Whether times and counts are those of the steady state: means over the cycle that the repeated step settles into
  /// (see Cycle). Otherwise they are those of the last of `iterations`.
  bool steady = false;
  int iterations = 1;  ///< number of repetitions of the step; if `steady`, the most that are tried to find the cycle
  bool count_search = false;  ///< measure the time that policies take for decisions during the run, see Result::search
};

}  // namespace tidepool
