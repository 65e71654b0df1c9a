// The CUDA runtime's entry points about devices, versions and errors.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tracer/dry/device/device_properties.hpp"
#include "tracer/dry/device/dry_device.hpp"

using namespace tidepool::dry;

namespace {

bool exists(int device) { return device >= 0 && device < DryDevice::get().devices(); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cudaGetDeviceCount(int* count) {
  *count = DryDevice::get().devices();
  return done(*count > 0 ? kSuccess : kNoDevice);
}
Status cudaGetDevice(int* device) {
  *device = DryDevice::device();
  return done(kSuccess);
}
Status cudaSetDevice(int device) { return done(DryDevice::get().set_device(device) ? kSuccess : kInvalidDevice); }
Status cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
Status cudaSetValidDevices(int*, int) { return done(kSuccess); }
Status cudaSetDeviceFlags(unsigned) { return done(kSuccess); }
Status cudaGetDeviceFlags(unsigned* flags) {
  *flags = 0;
  return done(kSuccess);
}
Status cudaDeviceReset() { return done(kSuccess); }
Status cudaDeviceSynchronize() {
  pending_results().fetch_all();
  return done(kSuccess);
}

Status cudaRuntimeGetVersion(int* version) {
  *version = runtime_version();
  return done(kSuccess);
}
Status cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

Status cudaGetDeviceProperties(void* properties, int device) {
  if (!exists(device)) return done(kInvalidDevice);
  DevicePreset preset = DryDevice::get().preset();
  preset.total_bytes = DryDevice::get().total();  // PyTorch lets a job have a share of these bytes
  write_properties(preset, runtime_version(), properties);
  return done(kSuccess);
}
Status cudaGetDeviceProperties_v2(void* properties, int device) { return cudaGetDeviceProperties(properties, device); }

Status cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (!exists(device)) return done(kInvalidDevice);
  *value = device_attribute(DryDevice::get().preset(), attribute);
  return done(kSuccess);
}

Status cudaDeviceGetPCIBusId(char* id, int length, int device) {
  std::snprintf(id, static_cast<std::size_t>(std::max(length, 0)), "0000:%02x:00.0", static_cast<unsigned>(device) + 1);
  return done(kSuccess);
}
Status cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return done(kSuccess);
}
Status cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return done(kSuccess);
}
Status cudaDeviceEnablePeerAccess(int, unsigned) { return done(kSuccess); }
Status cudaDeviceGetLimit(std::size_t* value, int) {
  *value = 0;
  return done(kSuccess);
}
Status cudaDeviceSetLimit(int, std::size_t) { return done(kSuccess); }
Status cudaDeviceSetCacheConfig(int) { return done(kSuccess); }

Status cudaGetLastError() { return take_last_error(); }
Status cudaPeekAtLastError() { return last_error(); }
const char* cudaGetErrorName(Status status) { return status_name(status); }
const char* cudaGetErrorString(Status status) { return status_text(status); }

Status cudaProfilerStart() { return done(kSuccess); }
Status cudaProfilerStop() { return done(kSuccess); }

}  // extern "C"
#pragma GCC visibility pop
