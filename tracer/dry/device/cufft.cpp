// cuFFT without a device. Workspaces are taken as empty: cuFFT does not document their size.
#include <cmath>
#include <map>
#include <mutex>

#include "tracer/dry/device/library_call.hpp"

using namespace tidepool::dry;

namespace {

struct Plan {
  void* stream = nullptr;
  double flops = 0;
};

/// Plans by handle. References to a plan stay valid while other plans are added.
struct Plans {
  std::mutex mutex;
  std::map<int, Plan> all;
  int last = 0;
};

Plans& plans() {
  static Plans* const made = new Plans;  // never destroyed, like the dry device itself
  return *made;
}

Plan& plan(int handle) {
  const std::lock_guard lock{plans().mutex};
  return plans().all[handle];
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cufftCreate(int* handle) {
  const std::lock_guard lock{plans().mutex};
  *handle = ++plans().last;
  return kSuccess;
}
Status cufftDestroy(int handle) {
  const std::lock_guard lock{plans().mutex};
  plans().all.erase(handle);
  return kSuccess;
}
Status cufftSetStream(int handle, void* stream) {
  plan(handle).stream = stream;
  return kSuccess;
}
Status cufftSetAutoAllocation(int, int) { return kSuccess; }
Status cufftSetWorkArea(int, void*) { return kSuccess; }
/// 5 n log2 n operations for each transform of n points, the usual count in comparisons of transforms.
Status cufftXtMakePlanMany(int handle, int rank, long long* sizes, long long*, long long, long long, int, long long*,
                           long long, long long, int, long long batch, std::size_t* workspace, int) {
  double points = 1;
  for (int i = 0; i < rank; ++i) points *= static_cast<double>(sizes[i]);
  plan(handle).flops = 5 * points * std::log2(std::fmax(points, 2)) * static_cast<double>(batch);
  if (workspace != nullptr) *workspace = 0;
  return kSuccess;
}
Status cufftXtExec(int handle, void* input, void* output, int) {
  const Plan& transform = plan(handle);
  call_library(transform.stream, {"cufftXtExec", {{input, Access::kRead}, {output, Access::kWrite}}, transform.flops});
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
