// PyTorch's own report of every tensor that its device allocator hands out or takes back. The allocator calls
// c10::reportMemoryUsageToProfiler for PyTorch's profiler. This library is preloaded, so its function is called
// instead.
#include <cstdint>

#include "tracer/dry/device/dry_device.hpp"

namespace c10 {

/// c10::Device, which is passed by value in one register.
struct Device {
  std::int8_t type;
  std::int8_t index;
};

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
  if (bytes > 0) {
    // No kernel writes the tensor, so the program would read the bytes of an earlier tensor, for example as a size.
    // Zeros do less harm.
    tidepool::dry::pending_results().drop(address, static_cast<std::uint64_t>(bytes));
    tidepool::dry::fill_bytes(pointer, 0, static_cast<std::size_t>(bytes));
    dry_device.recorder().tensor_allocated(address, static_cast<std::uint64_t>(bytes));
  } else {
    dry_device.recorder().tensor_freed(address);
  }
}

#pragma GCC visibility pop

}  // namespace c10
