// Failures that the stand-in for a driver tells.
#pragma once

#include "validator/cuda/driver.hpp"

namespace tidepool::cuda {

inline constexpr Status kUnjoined = 904, kLaunchFailed = 719;

}  // namespace tidepool::cuda
