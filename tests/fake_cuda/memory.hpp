// The fake's device memory, and pinned memory of the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "validator/cuda/driver.hpp"

namespace tidepool::cuda {

/// While an object lives, device memory can be read and written. Otherwise the host cannot access device memory, unless
/// the allocations span more than 64 MiB.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

/// Whether [address, address + size) is within one allocation of the device that has not been freed.
bool is_device_memory(std::uint64_t address, std::uint64_t size);
/// Whether the range is within one pinned allocation of the host that has not been freed.
bool is_pinned_memory(std::uint64_t address, std::uint64_t size);
/// Whether the address is one of the device's, allocated or not.
bool is_device_address(std::uint64_t address);

}  // namespace tidepool::cuda
