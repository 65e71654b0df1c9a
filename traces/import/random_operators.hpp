// Names of PyTorch's operators that draw random numbers. The files that PyTorch's recorders write do not say which do.
#pragma once

#include <string_view>

namespace tidepool {

/// Whether a PyTorch operator of this name, without namespace, draws other numbers when it is run again.
bool draws_random_numbers(std::string_view name);

}  // namespace tidepool
