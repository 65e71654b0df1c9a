#include "tracer/dry/device/cudnn.hpp"

#include <algorithm>

using namespace tidepool::dry;

namespace tidepool::dry {

Extents tensor_extents(const void* descriptor) {
  static auto* const get = real_cudnn<Status(const void*, int, int*, int*, int*, int*)>("cudnnGetTensorNdDescriptor");
  Extents extents;
  std::array<int, Extents::kMost> strides{};
  if (get == nullptr || get(descriptor, Extents::kMost, &extents.type, &extents.dimensions, extents.sizes.data(),
                            strides.data()) != kSuccess)
    return {};
  extents.dimensions = std::min(extents.dimensions, Extents::kMost);
  return extents;
}

Extents filter_extents(const void* descriptor) {
  static auto* const get = real_cudnn<Status(const void*, int, int*, int*, int*, int*)>("cudnnGetFilterNdDescriptor");
  Extents extents;
  int format = 0;
  if (get == nullptr ||
      get(descriptor, Extents::kMost, &extents.type, &format, &extents.dimensions, extents.sizes.data()) != kSuccess)
    return {};
  extents.dimensions = std::min(extents.dimensions, Extents::kMost);
  return extents;
}

Access blended(const void* beta, const Extents& result) {
  return beta == nullptr || is_zero(beta, result.doubles() ? sizeof(double) : sizeof(float)) ? Access::kWrite
                                                                                             : Access::kReadWrite;
}

}  // namespace tidepool::dry

#pragma GCC visibility push(default)
extern "C" {

Status cudnnCreate(void** handle) {
  *handle = new CudnnHandle;
  return kSuccess;
}
Status cudnnDestroy(void* handle) {
  delete static_cast<CudnnHandle*>(handle);
  return kSuccess;
}
Status cudnnSetStream(void* handle, void* stream) {
  static_cast<CudnnHandle*>(handle)->stream = stream;
  return kSuccess;
}
Status cudnnGetStream(void* handle, void** stream) {
  *stream = cudnn_stream(handle);
  return kSuccess;
}

// Random states of dropout inside RNNs. The dropout descriptor is not changed here, so the real library takes it as "no
// dropout".
Status cudnnDropoutGetStatesSize(void*, std::size_t* bytes) {
  constexpr std::size_t kStateBytes = 48;  // of a cuRAND XORWOW generator
  const DevicePreset& device = DryDevice::get().preset();
  *bytes = kStateBytes * static_cast<std::size_t>(device.multiprocessors) *
           static_cast<std::size_t>(device.threads_per_multiprocessor);
  return kSuccess;
}
Status cudnnSetDropoutDescriptor(void*, void* handle, float, void* states, std::size_t, unsigned long long) {
  if (states != nullptr)
    call_library(cudnn_stream(handle), {"cudnnSetDropoutDescriptor", {{states, Access::kWrite}}, 0});
  return kSuccess;
}
Status cudnnRestoreDropoutDescriptor(void*, void*, float, void*, std::size_t, unsigned long long) { return kSuccess; }

}  // extern "C"
#pragma GCC visibility pop
