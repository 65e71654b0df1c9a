// The kernels of the program, run on the host.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tidepool::cuda {

struct LaunchSize {
  unsigned blocks = 1, threads = 1;
  std::uint64_t tick = 1;  ///< ns between two values of the global timer
};

/// A launch with its arguments. `now`, in ns, is when it begins, and then when it has ended.
/// @throws std::runtime_error  if the threads of a warp do not shuffle together
using BoundKernel = std::function<void(const LaunchSize& size, double& now)>;
/// Reads the arguments, as cuLaunchKernel is given them.
using Binder = std::function<BoundKernel(void** arguments)>;

/// Nothing if the program has no kernel of that name.
Binder find_kernel(const std::string& name);

}  // namespace tidepool::cuda
