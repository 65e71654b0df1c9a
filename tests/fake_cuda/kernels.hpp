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

/// A launch with its arguments. `now`, in ns, is the begin of the launch; the call changes it to the end.
/// @throws std::runtime_error  if the threads of a warp do not shuffle together
using BoundKernel = std::function<void(const LaunchSize& size, double& now)>;
/// Reads the arguments of a launch, as cuLaunchKernel gets them.
using Binder = std::function<BoundKernel(void** arguments)>;

/// The binder of a kernel; nothing if the program has no kernel of that name.
Binder find_kernel(const std::string& name);

}  // namespace tidepool::cuda
