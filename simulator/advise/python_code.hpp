// Python files that change a job as advised: most have apply(model), which changes a model.
#pragma once

#include <string>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

/// Code that wraps modules in torch.utils.checkpoint.
std::string checkpoint_code(const std::vector<std::string>& modules);

/// The same, but outputs of these operators are kept.
std::string selective_code(const std::vector<std::string>& modules, const std::vector<std::string>& operators);

/// Code that compiles the model with a budget of activation memory, 0 to 1.
std::string budget_code(double budget);

/// Updates each parameter in backward, as soon as its gradient is complete: apply(model, optimizer).
std::string early_update_code();

/// Keeps on the host the tensors that modules save for backward, except parameters, buffers and tensors smaller than
/// `least`.
std::string offload_code(const std::vector<std::string>& modules, Bytes least);

/// A function micro_batches(batch), which cuts a batch into parts, and the loop over the parts.
std::string micro_batch_code(int parts);

}  // namespace tidepool
