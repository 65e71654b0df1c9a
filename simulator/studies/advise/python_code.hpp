// Python files that change a job as advised; most have a function apply(model), which changes the model. For a job with
// several models, `models` has their names (models_of(); empty for one model): the function is then apply(*models), and
// module names begin with the name of their model.
#pragma once

#include <string>
#include <vector>

#include "traces/base/quantity.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The name of each model of the recorded job: its class; the second model of class `Net` is `Net2`. Paths of modules
/// begin with the name of their model, except those of the first model. Empty if the recording names no second model.
std::vector<std::string> models_of(const Trace& trace);

/// The paths, with the name of the first model before those of its modules; unchanged if `models` is empty.
std::vector<std::string> with_models(std::vector<std::string> paths, const std::vector<std::string>& models);

/// Code that wraps modules in torch.utils.checkpoint.
std::string checkpoint_code(const std::vector<std::string>& modules, const std::vector<std::string>& models);

/// checkpoint_code() that keeps the outputs of these operators.
std::string selective_code(const std::vector<std::string>& modules, const std::vector<std::string>& operators,
                           const std::vector<std::string>& models);

/// Code that compiles the model with a budget of activation memory, 0 to 1. `compiles`: the script does so by itself.
std::string budget_code(double budget, const std::vector<std::string>& models, bool compiles = false);

/// Code that makes Adam or AdamW update all parameters by one kernel: apply(model, optimizer).
std::string fused_code();

/// Code that updates each parameter in backward, as soon as its gradient is complete: apply(model, optimizer).
std::string early_update_code();

/// Code that keeps on the host what modules save for backward, except their parameters and buffers, and tensors smaller
/// than `least`.
std::string offload_code(const std::vector<std::string>& modules, Bytes least, const std::vector<std::string>& models);

/// A function micro_batches(batch), which cuts a batch into parts, and the loop over the parts.
std::string micro_batch_code(int parts);

}  // namespace tidepool
