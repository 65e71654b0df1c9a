// OffMate's integer program: an option for each stage of a chain, and how many of its bytes are copied when.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/planning/remat/chain.hpp"
#include "simulator/machine/machine.hpp"
#include "traces/quantity.hpp"

namespace tidepool {

/// A chain whose stages run forward once. Step i is the forward step of stage i, step 2 * stages - 1 - i is its
/// backward step.
struct OffloadProblem {
  Chain chain;
  std::vector<std::vector<Bytes>> movable;  ///< by stage and option: bytes of saved values that may leave the device
  Link d2h, h2d;                            ///< without their latencies
  Bytes room;                               ///< for the chain
};

/// The plan of one stage. Bytes are sums over all steps so far.
struct StageOffload {
  std::uint32_t option = 0;
  std::vector<Bytes> out;  ///< by step: copied out when the step has ended
  std::vector<Bytes> in;   ///< by step: copied back when the step has ended
};

/// @return  the plan with the least time that was found within `nodes` nodes of branch and bound; none if there is
/// none. A step takes as long as its ops, as its copies out, or as its copies back, whichever is longest; what a
/// forward step copies of its own values comes after its ops. Values in part on the host use memory in part: what a
/// step copies out is gone for the next step, what it copies back is there from its beginning. A hundredth of the time
/// of copies is added, so that none is in vain. O(stages^2 + options) variables.
/// Source: topal-team/rockmate, rockmate/solvers/ilp/ilp_offload.py, without weights, gradients and optimizer states.
std::optional<std::vector<StageOffload>> plan_offload(const OffloadProblem& problem, int nodes);

}  // namespace tidepool
