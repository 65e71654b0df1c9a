#include "tracer/dry/occupancy.hpp"

#include <algorithm>

namespace tidepool::dry {
namespace {

constexpr int kWarp = 32, kRegistersPerMultiprocessor = 65536, kRegisterUnit = 256,
              kPartitions = 4;  // of a multiprocessor; each has a quarter of the registers

constexpr std::size_t round_up_to(std::size_t number, std::size_t unit) { return (number + unit - 1) / unit * unit; }

/// Warps of the kernel for which a multiprocessor has registers.
int most_warps(const KernelBinary& kernel) {
  const auto of_warp = static_cast<int>(round_up_to(std::size_t{kernel.registers} * kWarp, kRegisterUnit));
  return kRegistersPerMultiprocessor / kPartitions / of_warp * kPartitions;
}

}  // namespace

std::size_t reserved_shared(const DevicePreset& device) { return device.major >= 8 ? 1024 : 0; }

int most_threads(const KernelBinary& kernel) {
  constexpr int kMost = 1024;
  const int declared = kernel.most_threads == 0 ? kMost : std::min(static_cast<int>(kernel.most_threads), kMost);
  if (kernel.registers == 0) return declared;
  return std::min(declared, most_warps(kernel) * kWarp);
}

int blocks_per_multiprocessor(const DevicePreset& device, const KernelBinary& kernel, int threads,
                              std::size_t shared_bytes) {
  if (threads <= 0 || threads > most_threads(kernel)) return 0;
  const int warps = (threads + kWarp - 1) / kWarp;
  int blocks = std::min(device.blocks_per_multiprocessor, device.threads_per_multiprocessor / (warps * kWarp));
  if (kernel.registers != 0) blocks = std::min(blocks, most_warps(kernel) / warps);
  const std::size_t shared_unit = device.major >= 8 ? 128 : 256;
  const std::size_t shared = round_up_to(kernel.shared_bytes + shared_bytes + reserved_shared(device), shared_unit);
  if (shared == 0) return blocks;
  return std::min(blocks, static_cast<int>(device.shared_per_multiprocessor / shared));
}

}  // namespace tidepool::dry
