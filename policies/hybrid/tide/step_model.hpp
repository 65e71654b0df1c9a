// What planners know of a step and its machine: load, idle intervals, and the costs of their treatments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "policies/planning/gaps/dead_content.hpp"
#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/step_circle.hpp"
#include "simulator/machine.hpp"
#include "simulator/plan.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The inputs of the planner, by counted bytes. Copies take the times that they have alone on their link, with the time
/// of the host to submit them.
struct StepModel {
  static constexpr Nanos kImpossible{std::numeric_limits<std::int64_t>::max()};
  /// @param trace       at least one op; outlives the model
  /// @param spec        its pool counts bytes
  /// @param recomputes  whether content may be dropped and recomputed
  /// @param least       smaller buffers stay
  /// @param dead        content that is dropped after its last use, see find_dead_content()
  StepModel(const Trace& trace, const RunSpec& spec, bool recomputes, Bytes least, std::vector<DeadContent> dead);

  std::size_t ops() const { return circle.size(); }
  /// Whether content of this idle interval may be recomputed.
  bool can_drop(std::size_t gap) const;

  const Trace& trace;
  RunSpec spec;
  std::vector<DeadContent> dead;
  std::vector<Action> dead_drops;  ///< of `dead`, sorted
  StepCircle circle;
  std::vector<Gap> gaps;
  Machine machine;                        ///< latencies include the time to submit a copy
  std::vector<Nanos> in, out;             ///< by idle interval: time of its swap-in and swap-out
  std::vector<Nanos> recompute;           ///< by idle interval: time of recomputation if nothing else is dropped;
                                          ///< kImpossible: it crosses the boundary, or cannot be recomputed
  std::vector<std::uint32_t> by_release;  ///< idle intervals in the order of their releases
};

}  // namespace tidepool
