// Operators of PyTorch that draw random numbers, which PyTorch's files do not mark.
#pragma once

#include <string_view>

namespace tidepool {

/// Whether a PyTorch operator of this name, without namespace, draws other numbers when it is run again.
bool draws_random_numbers(std::string_view name);

}  // namespace tidepool
