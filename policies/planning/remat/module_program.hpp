// Integer program over the modules of a step: those to checkpoint selectively, and how much of each to give up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/planning/remat/two_lines.hpp"
#include "traces/quantity.hpp"

namespace tidepool {

/// One module and its call in the forward pass. Parts of the model contain each other; the model itself has the path "".
struct ModuleStats {
  std::string path = {};
  bool leaf = false;           ///< contains no other module: it cannot be checkpointed
  std::uint32_t returned = 0;  ///< place in the order in which calls end
  Bytes saved = {};            ///< activations that its call leaves, without its output
  Bytes alive = {};            ///< activations that are there when its call ends
  Bytes gradients = {};        ///< of parameters, when its backward begins
  Bytes temporary = {};        ///< of activations: made by its backward until memory peaks there
  Bytes made = {};             ///< outputs of all its ops together, saved or not
  Nanos runtime = {};          ///< of all its ops together
  std::vector<StraightLine> tradeoff =
      {};  ///< share of `runtime` that runs again at least, by share of `made` that is given up
};

/// In the order in which modules are called, so that what contains comes before what it contains.
struct ModelStats {
  Bytes parameters;
  std::vector<ModuleStats> modules;
};

struct ModuleDecision {
  std::size_t module = 0;
  double given_up = 0;  ///< share of `made`
};

struct ModuleChoice {
  std::vector<ModuleDecision> modules;  ///< none within another
  Nanos recompute;                      ///< as the tradeoffs have it
  Bytes peak;                           ///< of the backward phase: parameters, gradients and activations
};

/// The choice that runs least again with a peak of at most `budget`, where parameters and their gradients are divided
/// among `shards` devices; nothing: none was found. In the backward of a module, what was given up counts as absent if
/// its module's call ended before that of this one. The search ends after `nodes` of branch and bound with the best choice
/// known then; most models need fewer than the default. Selective checkpointing keeps outputs that would not be saved without
/// it, so a module must give up those at least. Source: PyTorch 2.15, torch/distributed/_tools/sac_ilp.py, sac_milp
/// (there, with a gap of 5 % and a time limit).
std::optional<ModuleChoice> choose_modules(const ModelStats& model, Bytes budget, std::int64_t shards,
                                           int nodes = 1'000);

}  // namespace tidepool
