// The modules of a recorded step as input of selective checkpointing: their ops, saved bytes and live bytes.
#pragma once

#include <vector>

#include "policies/remat/auto_sac/module_program.hpp"
#include "policies/remat/auto_sac/selective.hpp"
#include "traces/step/module_calls.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// All calls of one module, one for each forward pass. The model itself has the path "" and its call contains all
/// others.
struct CalledModule {
  std::string path;
  std::vector<ModuleCall> calls;
};

/// Modules in the order in which the first pass calls them; a module comes before those that it contains. Empty if the
/// trace has no module names.
std::vector<CalledModule> called_modules(const Trace& trace);

/// The forward ops of one call, as ops of the trace and as a region. In the region, sizes are rounded up to 512 bytes;
/// a buffer that an op updates in place counts as its output again; and the last op that is neither a view nor in place
/// has 0 bytes, since the call hands its output on. Random ops are kept if only parameters come into the call. Source:
/// PyTorch 2.15, torch/distributed/_tools/sac_estimator.py.
struct CallRegion {
  SelectiveRegion region;
  std::vector<OpId> ops;
  std::size_t last = 0;  ///< index of the op that makes the output
};
CallRegion region_of(const Trace& trace, const ModuleCall& call);

/// Share of time that runs again by share of bytes that are given up, in the order of order_of(). Two lines, or one
/// for at most three points, are fitted to a curve that lies above the greedy one. Empty if the region has no bytes or
/// takes no time. Source: the same, _get_sac_tradeoff_pwlf_stats.
std::vector<StraightLine> tradeoff_of(const SelectiveRegion& region);

/// Statistics of the modules in the first pass. Activations are the outputs of forward. An output of backward is a
/// gradient of a parameter if it outlives the backward phase, else temporary. O(steps * depth of modules). Source:
/// PyTorch 2.15, torch/distributed/_tools/ilp_utils.py, aggregate_stats.
ModelStats model_stats(const Trace& trace, const std::vector<CalledModule>& modules);

}  // namespace tidepool
