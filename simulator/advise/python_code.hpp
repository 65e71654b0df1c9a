// Python files with apply(model), which changes a model as advised.
#pragma once

#include <string>
#include <vector>

#include "traces/quantity.hpp"

namespace tidepool {

/// Wraps modules in torch.utils.checkpoint.
std::string checkpoint_code(const std::vector<std::string>& modules);

/// The same, but what these operators make is kept.
std::string selective_code(const std::vector<std::string>& modules, const std::vector<std::string>& operators);

/// Compiles the model with a budget of activation memory, 0 to 1.
std::string budget_code(double budget);

/// Keeps on the host what modules save for backward, but for parameters, buffers and tensors smaller than `least`.
std::string offload_code(const std::vector<std::string>& modules, Bytes least);

}  // namespace tidepool
