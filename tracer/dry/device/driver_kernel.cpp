// The CUDA driver's entry points by which programs load kernels that they compiled themselves, as Triton does, and
// launch them.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "tracer/cupti/tensor_maps.hpp"
#include "tracer/dry/device/dry_device.hpp"
#include "tracer/dry/device/host_memory.hpp"
#include "tracer/dry/occupancy.hpp"

using namespace tidepool::dry;

namespace {

struct LaunchConfig {  // CUlaunchConfig
  Dim3 grid, block;
  unsigned shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

/// The entries of cuLaunchKernel's last argument: parameters as one buffer.
enum class Extra : std::uintptr_t { kEnd = 0, kBuffer = 1, kBufferBytes = 2 };

/// One pointer for each parameter, into the buffer that `extra` names; empty if it names none.
std::vector<void*> unpack(const Kernel& kernel, void** extra) {
  std::byte* buffer = nullptr;
  std::size_t bytes = 0;
  for (; extra != nullptr && reinterpret_cast<std::uintptr_t>(extra[0]) != 0; extra += 2) {
    const auto entry = static_cast<Extra>(reinterpret_cast<std::uintptr_t>(extra[0]));
    if (entry == Extra::kBuffer) buffer = static_cast<std::byte*>(extra[1]);
    if (entry == Extra::kBufferBytes) bytes = *static_cast<std::size_t*>(extra[1]);
  }
  std::vector<void*> arguments;
  if (buffer == nullptr) return arguments;
  for (const auto& parameter : kernel.binary.parameters) {
    const bool there = parameter.offset <= bytes && parameter.size <= bytes - parameter.offset;
    arguments.push_back(there ? buffer + parameter.offset : nullptr);
  }
  return arguments;
}

Status launch(const void* function, Dim3 grid, Dim3 block, std::size_t shared_bytes, void* stream, void** arguments,
              void** extra) {
  DryDevice& dry_device = DryDevice::get();
  const Kernel* const kernel = dry_device.kernel(function);
  if (kernel == nullptr) return kInvalidHandle;
  std::vector<void*> unpacked;
  if (arguments == nullptr) {
    unpacked = unpack(*kernel, extra);
    arguments = unpacked.empty() ? nullptr : unpacked.data();
  }
  dry_device.launch(dry_device.stream(stream), {kernel, grid, block, shared_bytes}, arguments);
  return kSuccess;
}

/// Fills in a tensor map: bytes of no meaning, which no other address and shape have.
Status encode(void* map, void* address, const std::uint64_t* extents, unsigned rank) {
  std::uint64_t words[tidepool::cupti::kTensorMapBytes / sizeof(std::uint64_t)] = {
      reinterpret_cast<std::uint64_t>(address), rank};
  std::copy_n(extents, std::min(rank, 5u), words + 2);
  std::memcpy(map, words, sizeof words);
  DryDevice::get().recorder().tensor_map_encoded(static_cast<const std::byte*>(map), words[0]);
  return kSuccess;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cuModuleLoadData(const void** module, const void* image) {
  if (image == nullptr) return kInvalidValue;
  *module = DryDevice::get().load_module(whole_image(static_cast<const std::byte*>(image)));
  return kSuccess;
}
Status cuModuleLoadDataEx(const void** module, const void* image, unsigned, void*, void**) {
  return cuModuleLoadData(module, image);
}
Status cuModuleLoadFatBinary(const void** module, const void* image) { return cuModuleLoadData(module, image); }
Status cuModuleLoad(const void** module, const char* path) {
  constexpr Status kFileNotFound = 301;
  std::ifstream file{path, std::ios::binary};
  if (!file) return kFileNotFound;
  const std::string image{std::istreambuf_iterator<char>{file}, {}};
  *module = DryDevice::get().load_module(std::as_bytes(std::span{image}));
  return kSuccess;
}
Status cuModuleUnload(const void* module) { return DryDevice::get().unload_module(module) ? kSuccess : kInvalidHandle; }
Status cuModuleGetFunction(const Kernel** function, const void* module, const char* name) {
  return DryDevice::get().function(*function, module, name);
}

// Linking of PTX. PyTorch looks these functions up together with those above, and calls them only for code that NVRTC
// compiled.
Status cuLinkCreate_v2(unsigned, void*, void**, void**) { return kNotSupported; }
Status cuLinkAddData_v2(void*, int, void*, std::size_t, const char*, unsigned, void*, void**) { return kNotSupported; }
Status cuLinkComplete(void*, void**, std::size_t*) { return kNotSupported; }

Status cuFuncGetAttribute(int* value, int attribute, const void* function) {
  const Kernel* const kernel = DryDevice::get().kernel(function);
  if (kernel == nullptr) return kInvalidHandle;
  const DevicePreset& device = DryDevice::get().preset();
  switch (attribute) {  // CUfunction_attribute
    case 0:             // MAX_THREADS_PER_BLOCK
      *value = most_threads(kernel->binary);
      break;
    case 1:
      *value = static_cast<int>(kernel->binary.shared_bytes);
      break;
    case 4:
      *value = static_cast<int>(kernel->binary.registers);
      break;
    case 5:  // PTX_VERSION
    case 6:  // BINARY_VERSION
      *value = device.major * 10 + device.minor;
      break;
    case 8:  // MAX_DYNAMIC_SHARED_SIZE_BYTES
      *value = static_cast<int>(device.shared_per_block_optin - kernel->binary.shared_bytes);
      break;
    default:  // constant and local memory too: no spilled registers
      *value = 0;
  }
  return kSuccess;
}
Status cuFuncSetAttribute(const void*, int, int) { return kSuccess; }
Status cuFuncSetCacheConfig(const void*, int) { return kSuccess; }

Status cuLaunchKernel(const void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** arguments,
                      void** extra) {
  return launch(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, arguments,
                extra);
}
Status cuLaunchCooperativeKernel(const void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                 void* stream, void** arguments) {
  return launch(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, arguments,
                nullptr);
}
Status cuLaunchKernelEx(const void* config, const void* function, void** arguments, void** extra) {
  LaunchConfig c;
  std::memcpy(&c, config, sizeof c);
  return launch(function, c.grid, c.block, c.shared_bytes, c.stream, arguments, extra);
}

Status cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                   std::size_t shared_bytes) {
  const Kernel* const kernel = DryDevice::get().kernel(function);
  if (kernel == nullptr) return kInvalidHandle;
  *blocks = blocks_per_multiprocessor(DryDevice::get().preset(), kernel->binary, threads, shared_bytes);
  return kSuccess;
}
Status cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads,
                                                            std::size_t shared_bytes, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared_bytes);
}
/// As if each multiprocessor held one block of a cluster of the largest portable size.
Status cuOccupancyMaxActiveClusters(int* clusters, const void*, const void*) {
  constexpr int kPortableCluster = 8;
  *clusters = DryDevice::get().preset().multiprocessors / kPortableCluster;
  return kSuccess;
}

Status cuStreamIsCapturing(void* stream, int* status) {
  *status = DryDevice::get().stream(stream).capture != nullptr ? 1 : 0;
  return kSuccess;
}

Status cuPointerGetAttribute(void* value, int attribute, std::uint64_t address) {
  const bool on_device = DryDevice::get().memory().owns(address);
  if (!on_device && !pinned_memory().holds(reinterpret_cast<const void*>(address))) return kInvalidValue;
  const auto put = [value](auto said) {
    std::memcpy(value, &said, sizeof said);
    return kSuccess;
  };
  const auto range = DryDevice::get().memory().find(address);
  switch (attribute) {  // CUpointer_attribute
    case 1:             // CONTEXT
      return put(&DryDevice::get());
    case 2:  // MEMORY_TYPE: host 1, device 2
      return put(on_device ? 2 : 1);
    case 3:  // DEVICE_POINTER
    case 4:  // HOST_POINTER
      return attribute == 4 && on_device ? kInvalidValue : put(address);
    case 8:  // IS_MANAGED
      return put(0);
    case 9:  // DEVICE_ORDINAL
      return put(DryDevice::get().recorder().device());
    case 11:  // RANGE_START_ADDR
      return range ? put(range->address) : kInvalidValue;
    case 12:  // RANGE_SIZE
      return range ? put(range->bytes) : kInvalidValue;
    default:
      not_answered(("attribute " + std::to_string(attribute) + " of a pointer").c_str());
      return kNotSupported;
  }
}

Status cuCtxGetLimit(std::size_t* value, int) {
  *value = 1 << 20;
  return kSuccess;
}
Status cuCtxSetLimit(int, std::size_t) { return kSuccess; }

Status cuTensorMapEncodeTiled(void* map, int, unsigned rank, void* address, const std::uint64_t* extents,
                              const std::uint64_t*, const unsigned*, const unsigned*, int, int, int, int) {
  return encode(map, address, extents, rank);
}
Status cuTensorMapEncodeIm2col(void* map, int, unsigned rank, void* address, const std::uint64_t* extents,
                               const std::uint64_t*, const int*, const int*, unsigned, unsigned, const unsigned*, int,
                               int, int, int) {
  return encode(map, address, extents, rank);
}

}  // extern "C"
#pragma GCC visibility pop
