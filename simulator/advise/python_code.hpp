// Python files that change a job as advised: most have apply(model), which changes a model. `models` are those of a job
// of several (models_of()): then it is apply(*models), and names of modules begin with that of their model.
#pragma once

#include <string>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

/// Code that wraps modules in torch.utils.checkpoint.
std::string checkpoint_code(const std::vector<std::string>& modules, const std::vector<std::string>& models);

/// The same, but outputs of these operators are kept.
std::string selective_code(const std::vector<std::string>& modules, const std::vector<std::string>& operators,
                           const std::vector<std::string>& models);

/// Code that compiles the model with a budget of activation memory, 0 to 1.
std::string budget_code(double budget, const std::vector<std::string>& models);

/// Updates each parameter in backward, as soon as its gradient is complete: apply(model, optimizer).
std::string early_update_code();

/// Keeps on the host the tensors that modules save for backward, except parameters, buffers and tensors smaller than
/// `least`.
std::string offload_code(const std::vector<std::string>& modules, Bytes least, const std::vector<std::string>& models);

/// A function micro_batches(batch), which cuts a batch into parts, and the loop over the parts.
std::string micro_batch_code(int parts);

}  // namespace tidepool
