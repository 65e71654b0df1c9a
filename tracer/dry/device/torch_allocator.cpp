// PyTorch's own report of every tensor that its device allocator hands out or takes back, and of every request that it
// cannot serve. The allocator calls c10::reportMemoryUsageToProfiler and c10::reportOutOfMemoryToProfiler for PyTorch's
// profiler. This library is preloaded, so its functions are called instead.
#include <atomic>
#include <cstdint>

#include "tracer/dry/device/dry_device.hpp"

namespace {

std::atomic<void (*)(const void*)> told{nullptr};

}  // namespace

namespace c10 {

/// c10::Device, which is passed by value in one register.
struct Device {
  std::int8_t type;
  std::int8_t index;
};

/// c10::cuda::CUDAStream, which is returned by value in two registers.
struct CudaStream {
  Device device;
  std::int64_t id;
};

/// The stream of this thread, on which PyTorch allocates.
tidepool::dry::Stream& current_stream() {
  constexpr const char* kLibrary = "libc10_cuda.so";
  static auto* const current = reinterpret_cast<CudaStream (*)(std::int8_t)>(
      tidepool::dry::real_function(kLibrary, "_ZN3c104cuda20getCurrentCUDAStreamEa"));
  static auto* const handle = reinterpret_cast<void* (*)(const CudaStream*)>(
      tidepool::dry::real_function(kLibrary, "_ZNK3c104cuda10CUDAStream6streamEv"));
  tidepool::dry::DryDevice& dry_device = tidepool::dry::DryDevice::get();
  if (current == nullptr || handle == nullptr) return dry_device.stream(nullptr);
  const CudaStream stream = current(-1);
  return dry_device.stream(handle(&stream));
}

#pragma GCC visibility push(default)

/// @param bytes  size of the block at `pointer`; negative if the block was freed
void reportMemoryUsageToProfiler(void* pointer, std::int64_t bytes, std::size_t allocated, std::size_t reserved,
                                 Device device) {
  using Report = void(void*, std::int64_t, std::size_t, std::size_t, Device);
  static auto* const real = reinterpret_cast<Report*>(
      tidepool::dry::real_function("libc10.so", "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"));
  if (real != nullptr) real(pointer, bytes, allocated, reserved, device);
  tidepool::dry::DryDevice& dry_device = tidepool::dry::DryDevice::get();
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  if (!dry_device.memory().owns(address)) return;
  dry_device.recorder().allocator_said(allocated, reserved);
  if (bytes > 0) {
    // No kernel writes the tensor, so the program would read the bytes of an earlier tensor, for example as a size.
    // Zeros do less harm.
    tidepool::dry::pending_results().drop(address, static_cast<std::uint64_t>(bytes));
    tidepool::dry::fill_bytes(pointer, 0, static_cast<std::size_t>(bytes));
    if (const auto tell = told.load()) tell(pointer);
    dry_device.recorder().tensor_allocated(address, static_cast<std::uint64_t>(bytes), current_stream());
  } else {
    dry_device.recorder().tensor_freed(address);
  }
}

/// @param bytes  size of a request that the device's allocator could not serve
void reportOutOfMemoryToProfiler(std::int64_t bytes, std::size_t allocated, std::size_t reserved, Device device) {
  using Report = void(std::int64_t, std::size_t, std::size_t, Device);
  static auto* const real = reinterpret_cast<Report*>(
      tidepool::dry::real_function("libc10.so", "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"));
  if (real != nullptr) real(bytes, allocated, reserved, device);
  tidepool::dry::DryDevice::get().recorder().allocator_failed({static_cast<std::uint64_t>(bytes), allocated});
}

#pragma GCC visibility pop

}  // namespace c10

#pragma GCC visibility push(default)
/// Called by PyTorch's hook: tell(address) is called for each tensor from now on, once it has memory.
extern "C" void tidepool_tell_tensors(void (*tell)(const void*)) { told = tell; }
#pragma GCC visibility pop
