// The modules of a recorded step as selective checkpointing sees them: their ops, what they save, when it is there.
#pragma once

#include <vector>

#include "policies/planning/remat/module_program.hpp"
#include "policies/planning/remat/selective.hpp"
#include "simulator/advise/module_calls.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// All calls of one module, one for each forward pass. That of the model itself has the path "" and spans all others.
struct CalledModule {
  std::string path;
  std::vector<ModuleCall> calls;
};

/// In the order in which the first pass calls them, what contains before what it contains. Empty where the trace names
/// no modules.
std::vector<CalledModule> called_modules(const Trace& trace);

/// The forward ops of one call, and the same as a region: sizes are rounded up to 512 bytes, what an op updates in place
/// counts as its output again, and the last op that is neither a view nor in place costs nothing, since the call hands
/// its output on. Random ops are kept if nothing but parameters comes into the call. Source: PyTorch 2.15,
/// torch/distributed/_tools/sac_estimator.py.
struct CallRegion {
  SelectiveRegion region;
  std::vector<OpId> ops;
  std::size_t last = 0;  ///< index of the op that makes the output
};
CallRegion region_of(const Trace& trace, const ModuleCall& call);

/// Share of time that runs again, by share of bytes given up, in the order of order_of(): a curve above the greedy one,
/// fitted by two lines. Source: the same, _get_sac_tradeoff_pwlf_stats.
std::vector<StraightLine> tradeoff_of(const SelectiveRegion& region);

/// By the first pass. Activations are what forward makes; of what backward makes, what it leaves behind is a gradient
/// of a parameter and the rest temporary. O(steps * depth of modules). Source: PyTorch 2.15,
/// torch/distributed/_tools/ilp_utils.py, aggregate_stats.
ModelStats model_stats(const Trace& trace, const std::vector<CalledModule>& modules);

}  // namespace tidepool
