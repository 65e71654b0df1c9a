// Stand-in for NVIDIA's management library: the functions that PyTorch calls. It is a library of its own because
// programs open it by name.
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "tracer/dry/device/device_count.hpp"

namespace {

using Result = int;
constexpr Result kSuccess = 0, kNotSupported = 3;
int device;  // handles point to it

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Result nvmlInit() { return kSuccess; }
Result nvmlInit_v2() { return kSuccess; }
Result nvmlShutdown() { return kSuccess; }
const char* nvmlErrorString(Result result) {
  return result == kSuccess ? "Success" : "Not answered by tidepool's dry run";
}
Result nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return kSuccess;
}
Result nvmlDeviceGetCount_v2(unsigned* count) {
  *count = tidepool::dry::kMostDevices;  // of the machine; CUDA_VISIBLE_DEVICES selects from them
  return kSuccess;
}
Result nvmlDeviceGetHandleByIndex_v2(unsigned, void** handle) {
  *handle = &device;
  return kSuccess;
}
Result nvmlDeviceGetHandleByPciBusId_v2(const char*, void** handle) { return nvmlDeviceGetHandleByIndex_v2(0, handle); }
Result nvmlDeviceGetUUID(void*, char* text, unsigned length) {
  std::snprintf(text, length, "GPU-74696465-706f-6f6c-2064-72792072756e");  // as cudaDeviceProp::uuid
  return kSuccess;
}
Result nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void*) {
  *count = 0;
  return kSuccess;
}
Result nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int*) { return kNotSupported; }
Result nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, void*) { return kNotSupported; }
/// Reports no fabric. Cluster, status, clique and state, which follow the version that the caller set, become zero.
Result nvmlDeviceGetGpuFabricInfoV(void*, void* info) {
  constexpr std::size_t kVersion = 4, kBytes = 16 + 4 + 4 + 1;
  std::memset(static_cast<char*>(info) + kVersion, 0, kBytes);
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
