// Effects of torch.utils.checkpoint (use_reentrant=False) around a module: buffers freed and ops run again. Operators
// whose outputs selective checkpointing may keep.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/studies/advise/step_uses.hpp"
#include "traces/step/module_calls.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The effect on a step if one call of a module is checkpointed. Positions are in Trace::steps().
///
/// Buffers that the call makes in forward and saves for backward are freed after their last use in forward. Before the
/// first backward op that needs any of them, the call runs again, up to the last op that saves a tensor. The buffers
/// then live as long as backward needs them. The call's inputs live until backward has left the module. Selective
/// checkpointing keeps all outputs of some operators until the second run, even those that backward does not need.
struct CheckpointedCall {
  /// The new end of a buffer: it is freed after the step at this position.
  struct End {
    BufferId buffer;
    std::size_t position = 0;
  };
  ModuleCall call;
  std::size_t again = 0;        ///< the call runs again before the step at this position
  std::size_t again_stop = 0;   ///< position at which the second run stops
  std::size_t left = 0;         ///< position of the call's last backward op that needs a buffer of forward
  std::vector<End> ends;        ///< new ends of buffers of the first run
  std::vector<End> again_ends;  ///< ends of those buffers of the second run that outlive the second run
  std::vector<BufferId> inputs;
  Nanos duration;                      ///< sum over the ops that run again
  std::vector<std::size_t> kept = {};  ///< positions, rising, of ops whose outputs are kept: they do not run again
  /// Kept buffers that the program frees before the second run. Each now ends in the second run, after this step of the
  /// call; or after the step at `left`, if the second run stops before this step.
  std::vector<End> kept_ends = {};
};

/// Operators whose outputs selective checkpointing keeps, for example "aten::mm".
using KeptOperators = std::set<std::string, std::less<>>;

/// The name of an operator up to its first dot, without its overload: "aten::mm" of "aten::mm.out".
std::string_view operator_of(std::string_view op);

/// @return  none if a checkpoint would free nothing, or if the forward pass writes the call's inputs, or parameters or
///          buffers of the model that the call computes with, during the call or after it, so that a second run would
///          differ
std::optional<CheckpointedCall> checkpointed_call(const Trace& trace, const StepUses& uses, const ModuleCall& call,
                                                  const KeptOperators& kept = {});

/// Sets of operators to keep, each larger than the one before; operators with the most time per byte of output come
/// first. All random operators are kept or none, since they share a generator. Operators are left out if they have no
/// new output, if their outputs are changed in place, or if they take less than a hundredth of the forward pass's time.
/// At most eight sets; none if the ops are kernels.
std::vector<KeptOperators> operators_to_keep(const Trace& trace);

}  // namespace tidepool
