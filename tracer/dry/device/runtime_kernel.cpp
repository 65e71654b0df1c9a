// The CUDA runtime's entry points for registering, describing and launching kernels.
#include <algorithm>
#include <cstring>

#include "tracer/dry/device/dry_device.hpp"
#include "tracer/dry/occupancy.hpp"

using namespace tidepool::dry;

namespace {

/// The argument of __cudaRegisterFatBinary in nvcc's host code (fatbinary_section.h).
struct FatBinaryWrapper {
  int magic, version;
  const std::byte* data;
  void* rest;
};

struct LaunchConfig {  // cudaLaunchConfig_t
  Dim3 grid, block;
  std::size_t shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

struct PushedLaunch {  // kept from __cudaPushCallConfiguration until the kernel's host function pops it
  Dim3 grid, block;
  std::size_t shared_bytes = 0;
  void* stream = nullptr;
};
thread_local std::vector<PushedLaunch> pushed;

Status launch(const void* function, Dim3 grid, Dim3 block, void** arguments, std::size_t shared_bytes, void* stream) {
  constexpr Status kInvalidFunction = 98;
  DryDevice& dry_device = DryDevice::get();
  const Kernel* const kernel = dry_device.kernel(function);
  if (kernel == nullptr) return done(kInvalidFunction);
  dry_device.launch(dry_device.stream(stream), {kernel, grid, block, shared_bytes}, arguments);
  return done(kSuccess);
}

struct FunctionAttributes {  // the first members of cudaFuncAttributes
  std::size_t shared_bytes = 0, constant_bytes = 0, local_bytes = 0;
  int most_threads = 0, registers = 0, ptx_version = 0, binary_version = 0, cache_mode = 0, most_dynamic_shared = 0,
      carveout = -1;
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(new FatBinaryWrapper{*static_cast<FatBinaryWrapper*>(wrapper)});
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, void*, void*, void*, void*,
                            int*) {
  DryDevice::get().register_function(host, name, reinterpret_cast<FatBinaryWrapper*>(binary)->data);
}
void __cudaRegisterVar(void**, char* host, char*, const char*, int, std::size_t bytes, int, int) {
  DryDevice::get().register_variable(host, bytes);
}
void __cudaRegisterManagedVar(void**, void** host, char*, const char*, int, std::size_t bytes, int, int) {
  DryDevice::get().register_variable(host, bytes);
}
char __cudaInitModule(void**) { return 1; }

unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared_bytes, void* stream) {
  pushed.push_back({grid, block, shared_bytes, stream});
  return 0;
}
Status __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared_bytes, void* stream) {
  if (pushed.empty()) return done(kInvalidValue);
  const PushedLaunch top = pushed.back();
  pushed.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  std::memcpy(stream, &top.stream, sizeof top.stream);
  return done(kSuccess);
}
/// A kernel's handle is its host function.
Status __cudaGetKernel(const void** kernel, const void* function) {
  *kernel = function;
  return done(kSuccess);
}
Status cudaGetKernel(const void** kernel, const void* function) { return __cudaGetKernel(kernel, function); }
Status cudaGetFuncBySymbol(const void** function, const void* symbol) { return __cudaGetKernel(function, symbol); }

Status cudaLaunchKernel(const void* function, Dim3 grid, Dim3 block, void** arguments, std::size_t shared_bytes,
                        void* stream) {
  return launch(function, grid, block, arguments, shared_bytes, stream);
}
Status cudaLaunchCooperativeKernel(const void* function, Dim3 grid, Dim3 block, void** arguments,
                                   std::size_t shared_bytes, void* stream) {
  return launch(function, grid, block, arguments, shared_bytes, stream);
}
Status __cudaLaunchKernel(const void* kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t shared_bytes,
                          void* stream) {
  return launch(kernel, grid, block, arguments, shared_bytes, stream);
}
Status cudaLaunchKernelExC(const void* config, const void* function, void** arguments) {
  LaunchConfig c;
  std::memcpy(&c, config, sizeof c);
  return launch(function, c.grid, c.block, arguments, c.shared_bytes, c.stream);
}

Status cudaFuncGetAttributes(void* attributes, const void* function) {
  constexpr std::size_t kBytes = 128;  // the least sizeof(cudaFuncAttributes) of all CUDA versions known
  const Kernel* const kernel = DryDevice::get().kernel(function);
  if (kernel == nullptr) return done(kInvalidValue);
  const DevicePreset& device = DryDevice::get().preset();
  const int capability = kernel->binary.capability,
            version = capability != 0 ? capability : device.major * 10 + device.minor;
  FunctionAttributes said;
  said.shared_bytes = kernel->binary.shared_bytes;
  said.most_threads = most_threads(kernel->binary);
  said.registers = static_cast<int>(kernel->binary.registers);
  said.ptx_version = said.binary_version = version;
  said.most_dynamic_shared = 48 << 10;
  std::memset(attributes, 0, kBytes);
  std::memcpy(attributes, &said, sizeof said);
  return done(kSuccess);
}
Status cudaFuncSetAttribute(const void*, int, int) { return done(kSuccess); }
Status cudaFuncSetCacheConfig(const void*, int) { return done(kSuccess); }
Status cudaKernelSetAttributeForDevice(const void*, int, int, int) { return done(kSuccess); }

Status cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                     std::size_t shared_bytes) {
  const Kernel* const kernel = DryDevice::get().kernel(function);
  if (kernel == nullptr) return done(kInvalidValue);
  *blocks = blocks_per_multiprocessor(DryDevice::get().preset(), kernel->binary, threads, shared_bytes);
  return done(kSuccess);
}
Status cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads,
                                                              std::size_t shared_bytes, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared_bytes);
}

}  // extern "C"
#pragma GCC visibility pop
