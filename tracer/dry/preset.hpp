// Devices that a dry run can stand in for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tidepool::dry {

/// Properties of a device that programs ask for. Sizes in bytes. Rates are the maker's peak figures, but those of PCIe
/// links are measured; only estimates use rates.
struct DevicePreset {
  std::string_view name;         ///< as `--device` takes it: h100-80gb
  std::string_view device_name;  ///< as the driver reports it
  int major = 0, minor = 0;      ///< compute capability
  int multiprocessors = 0;
  std::uint64_t total_bytes = 0;    ///< as cudaMemGetInfo reports it
  std::uint64_t context_bytes = 0;  ///< kept by driver and context: roughly, since driver versions differ
  std::uint64_t l2_bytes = 0;
  std::uint64_t shared_per_block_optin = 0, shared_per_multiprocessor = 0;
  int threads_per_multiprocessor = 0, blocks_per_multiprocessor = 0;
  int bus_bits = 0;
  double bytes_per_second = 0;       ///< of device memory
  double flops = 0;                  ///< per second, of dense 16-bit matrix products with tensor cores
  double flops_single = 0;           ///< per second, of single precision without tensor cores
  double link_bytes_per_second = 0;  ///< to another device of the machine, in one direction: NVLink, or else PCIe
};

/// Bytes per second of the device's link to the host, in one direction. It is taken to be PCIe of the fifth generation
/// for devices of compute capability 9.0 or later, and of the fourth for older ones.
double host_link(const DevicePreset& preset);

std::span<const DevicePreset> device_presets();
/// @throws InputError naming the nearest preset
const DevicePreset& device_preset(std::string_view name);

}  // namespace tidepool::dry
