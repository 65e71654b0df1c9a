// OffMate's integer program: an option for each stage of a chain, and how many of its bytes are copied when.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/planning/remat/chain.hpp"
#include "simulator/machine.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

/// A chain whose stages run forward once. Step i is the forward step of stage i, step 2 * stages - 1 - i is its
/// backward step.
struct OffloadProblem {
  Chain chain;
  std::vector<std::vector<Bytes>> movable;  ///< by stage and option: bytes of saved values that may leave the device
  Link d2h, h2d;                            ///< their latencies are ignored
  Bytes room;                               ///< bytes for the chain
};

/// The plan of one stage. Bytes are sums over all steps so far.
struct StageOffload {
  std::uint32_t option = 0;
  std::vector<Bytes> out;  ///< by step: copied out when the step has ended
  std::vector<Bytes> in;   ///< by step: copied back when the step has ended
};

/// @return  the plan with the least time that was found within `nodes` nodes of branch and bound; none if none
/// was found. A step takes as long as its ops, its swap-outs or its swap-ins, whichever is longest; a forward step
/// copies its own values after its ops. A value that is in part on the host takes part of its memory: bytes that a step
/// copies out are free in the next step, bytes that it copies back take memory from its beginning. A hundredth of the
/// time of copies is added, so that no copy is useless. O(stages^2 + options) variables.
/// Source: topal-team/rockmate, rockmate/solvers/ilp/ilp_offload.py, without weights, gradients and optimizer states.
std::optional<std::vector<StageOffload>> plan_offload(const OffloadProblem& problem, int nodes);

}  // namespace tidepool
