// Integer program over the modules of a step: which to checkpoint selectively, and how many bytes each gives up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/remat/auto_sac/two_lines.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

/// One module and its call in the forward pass. Modules contain each other; the model itself has the path "".
struct ModuleStats {
  std::string path = {};
  bool leaf = false;           ///< contains no other module: it cannot be checkpointed
  std::uint32_t returned = 0;  ///< position in the order in which calls return
  Bytes saved = {};            ///< activations that its call leaves, without its output
  Bytes alive = {};            ///< activations that are live when its call returns
  Bytes gradients = {};        ///< gradients of parameters that are live when its backward begins
  Bytes temporary = {};        ///< outputs of backward but gradients: growth from its backward's begin to its peak
  Bytes made = {};             ///< outputs of all its ops together, saved or not
  Nanos runtime = {};          ///< of all its ops together
  std::vector<StraightLine> tradeoff =
      {};  ///< least share of `runtime` that runs again, by the share of `made` that is given up
};

/// Modules in the order of their calls, so that a module comes before those that it contains.
struct ModelStats {
  Bytes parameters;
  std::vector<ModuleStats> modules;
};

struct ModuleDecision {
  std::size_t module = 0;
  double given_up = 0;  ///< share of `made`
};

struct ModuleChoice {
  std::vector<ModuleDecision> modules;  ///< no module within another
  Nanos recompute;                      ///< as given by the tradeoffs
  Bytes peak;                           ///< of the backward phase: parameters, gradients and activations
};

/// The choice with the least recomputation whose peak is at most `budget`, if parameters and their gradients are
/// divided among `shards` devices. None if the search finds none. During the backward of a module, bytes that another
/// module gave up count as absent if the other module's call returned earlier. The search ends after `nodes` nodes of
/// branch and bound with the best choice known; most models need fewer than the default. The share that is given up is
/// one of all outputs of the module's ops. So a checkpointed module gives up at least the outputs that would not be
/// saved without checkpointing. Source: PyTorch 2.15, torch/distributed/_tools/sac_ilp.py, sac_milp (there, with a gap
/// of 5 % and a time limit).
std::optional<ModuleChoice> choose_modules(const ModelStats& model, Bytes budget, std::int64_t shards,
                                           int nodes = 1'000);

}  // namespace tidepool
