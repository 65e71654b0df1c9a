// The CUDA driver's entry points that PyTorch asks for: devices, the current context, virtual memory, and the look-up
// of entry points by name.
#include <dlfcn.h>

#include <array>
#include <cstring>
#include <string>

#include "tracer/dry/device/dry_device.hpp"

using namespace tidepool::dry;

namespace {

/// The dry device itself as a library, for looking entry points up by name.
void* own_library() {
  static void* const library = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&own_library), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return library;
}

// One function for each of the first 63 names without an answer, so that a call of the function can report its name.
// All later names share the last function, which reports the first of them.
constexpr std::size_t kMostUnanswered = 64;
std::array<std::string, kMostUnanswered> unanswered_names;

template <std::size_t I>
Status unanswered() {
  not_answered(unanswered_names[I].c_str());
  return kNotSupported;
}

template <std::size_t... I>
constexpr std::array<Status (*)(), sizeof...(I)> unanswered_table(std::index_sequence<I...>) {
  return {&unanswered<I>...};
}
constexpr auto kUnanswered = unanswered_table(std::make_index_sequence<kMostUnanswered>{});

void* unanswered_function(const std::string& name) {
  static std::mutex mutex;
  const std::lock_guard lock{mutex};
  std::size_t i = 0;
  while (i + 1 < kMostUnanswered && !unanswered_names[i].empty() && unanswered_names[i] != name) ++i;
  if (unanswered_names[i].empty()) unanswered_names[i] = name;
  return reinterpret_cast<void*>(kUnanswered[i]);
}

void* entry_point(const char* name) {
  if (void* const found = dlsym(own_library(), name)) return found;
  return unanswered_function(name);
}

struct AllocationProperties {  // CUmemAllocationProp
  int type = 1, handle_types = 0, location_type = 1, location_id = 0;
  void* metadata = nullptr;
  unsigned char flags[8] = {};
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long, int* found) {
  *function = entry_point(name);
  if (found != nullptr) *found = 0;
  return done(kSuccess);
}
Status cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long flags,
                                        int* found) {
  return cudaGetDriverEntryPoint(name, function, flags, found);
}
Status cuGetProcAddress(const char* name, void** function, int, std::uint64_t) {
  *function = entry_point(name);
  return kSuccess;
}
Status cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t flags, int* found) {
  if (found != nullptr) *found = 0;
  return cuGetProcAddress(name, function, version, flags);
}
/// Refuses the undocumented tables by which NVIDIA's own libraries call their driver.
Status cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kInvalidValue;
}

Status cuInit(unsigned) { return DryDevice::get().devices() > 0 ? kSuccess : kNoDevice; }
Status cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
Status cuDeviceGetCount(int* count) {
  *count = DryDevice::get().devices();
  return kSuccess;
}
Status cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < DryDevice::get().devices() ? kSuccess : kInvalidDevice;
}
Status cuDeviceGetName(char* name, int length, int) {
  const std::string_view said = DryDevice::get().preset().device_name;
  if (length > 0) name[said.copy(name, static_cast<std::size_t>(length) - 1)] = 0;
  return kSuccess;
}
Status cudaDeviceGetAttribute(int* value, int attribute, int device);
Status cuDeviceGetAttribute(int* value, int attribute, int device) {
  return cudaDeviceGetAttribute(value, attribute, device);
}
Status cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = DryDevice::get().total();
  return kSuccess;
}
Status cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}
Status cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &DryDevice::get();
  return kSuccess;
}
Status cuCtxGetCurrent(void** context) { return cuDevicePrimaryCtxRetain(context, 0); }
Status cuCtxSetCurrent(void*) { return kSuccess; }
Status cuCtxPushCurrent(void*) { return kSuccess; }
Status cuCtxPopCurrent(void** context) { return context == nullptr ? kSuccess : cuCtxGetCurrent(context); }
Status cuCtxGetDevice(int* device) {
  *device = DryDevice::device();
  return kSuccess;
}
Status cuGetErrorString(Status status, const char** text) {
  *text = status_text(status);
  return kSuccess;
}
Status cuGetErrorName(Status status, const char** name) {
  *name = status_name(status);
  return kSuccess;
}
Status cuLogsRegisterCallback(void*, void*, void** handle) {
  if (handle != nullptr) *handle = nullptr;
  return kSuccess;
}
Status cuLogsUnregisterCallback(void*) { return kSuccess; }

Status cuMemGetAddressRange(std::uint64_t* base, std::size_t* bytes, std::uint64_t address) {
  const auto range = DryDevice::get().memory().find(address);
  if (!range) return kInvalidValue;
  if (base != nullptr) *base = range->address;
  if (bytes != nullptr) *bytes = range->bytes;
  return kSuccess;
}
Status cuMemGetAllocationGranularity(std::size_t* granularity, const void*, int) {
  *granularity = kDevicePage;
  return kSuccess;
}
Status cuMemAddressReserve(std::uint64_t* address, std::size_t bytes, std::size_t alignment, std::uint64_t,
                           unsigned long long) {
  const auto got = DryDevice::get().memory().reserve(bytes, alignment);
  *address = got.value_or(0);
  return got ? kSuccess : kOutOfMemory;
}
Status cuMemAddressFree(std::uint64_t address, std::size_t) {
  return DryDevice::get().memory().unreserve(address) ? kSuccess : kInvalidValue;
}
Status cuMemCreate(std::uint64_t* handle, std::size_t bytes, const void*, unsigned long long) {
  if (!DryDevice::get().owns_device()) return kOutOfMemory;
  const auto got = DryDevice::get().memory().create(bytes);
  *handle = got.value_or(0);
  return got ? kSuccess : kOutOfMemory;
}
Status cuMemRelease(std::uint64_t handle) {
  return DryDevice::get().memory().release(handle) ? kSuccess : kInvalidValue;
}
Status cuMemMap(std::uint64_t address, std::size_t bytes, std::size_t, std::uint64_t handle, unsigned long long) {
  if (!DryDevice::get().memory().map(address, bytes, handle)) return kInvalidValue;
  DryDevice::get().recorder().mapped(address, bytes);
  return kSuccess;
}
Status cuMemUnmap(std::uint64_t address, std::size_t bytes) {
  pending_results().drop(address, bytes);
  DryDevice::get().recorder().unmapped(address, bytes);
  return DryDevice::get().memory().unmap(address, bytes) ? kSuccess : kInvalidValue;
}
Status cuMemSetAccess(std::uint64_t, std::size_t, const void*, std::size_t) { return kSuccess; }
Status cuMemRetainAllocationHandle(std::uint64_t* handle, void* address) {
  const auto got = DryDevice::get().memory().handle_at(reinterpret_cast<std::uint64_t>(address));
  *handle = got.value_or(0);
  return got ? kSuccess : kInvalidValue;
}
Status cuMemGetAllocationPropertiesFromHandle(void* properties, std::uint64_t) {
  const AllocationProperties said;
  std::memcpy(properties, &said, sizeof said);
  return kSuccess;
}

// Memory shared between processes or devices. PyTorch 2.6 looks these functions up at its first out-of-memory error,
// and calls them only for symmetric memory.
Status cuMemExportToShareableHandle(void*, std::uint64_t, int, unsigned long long) { return kNotSupported; }
Status cuMemImportFromShareableHandle(std::uint64_t*, void*, int) { return kNotSupported; }
Status cuMemsetD32Async(std::uint64_t, unsigned, std::size_t, void*) { return kNotSupported; }
Status cuStreamWriteValue32(void*, std::uint64_t, unsigned, unsigned) { return kNotSupported; }
Status cuMulticastCreate(std::uint64_t*, const void*) { return kNotSupported; }
Status cuMulticastAddDevice(std::uint64_t, int) { return kNotSupported; }
Status cuMulticastBindMem(std::uint64_t, std::size_t, std::uint64_t, std::size_t, std::size_t, unsigned long long) {
  return kNotSupported;
}

}  // extern "C"
#pragma GCC visibility pop
