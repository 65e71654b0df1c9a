#include "tracer/framework_environment.hpp"

#include "traces/base/refuse.hpp"

namespace tidepool {

std::map<std::string, std::string> framework_environment(const std::string& name) {
  if (name == "torch") return {};
  if (name == "jax") return {{"XLA_PYTHON_CLIENT_ALLOCATOR", "platform"}, {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"}};
  if (name == "tensorflow" || name == "tf")
    return {{"TF_GPU_ALLOCATOR", "cuda_malloc_async"}, {"TF_FORCE_GPU_ALLOW_GROWTH", "true"}};
  refuse("--framework: '{}' is no framework known here; expected jax, tensorflow (tf) or torch", name);
}

}  // namespace tidepool
