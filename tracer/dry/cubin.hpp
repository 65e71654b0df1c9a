// Reader of compiled CUDA binaries: the offset of each kernel parameter, and the needs of a block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tracer/cupti/parameter_scan.hpp"

namespace tidepool::dry {

struct KernelBinary {
  cupti::KernelLayout parameters;  ///< by ordinal
  std::uint32_t registers = 0;     ///< of a thread; 0: not said
  std::uint32_t shared_bytes = 0;  ///< static shared memory of a block
  std::uint32_t most_threads = 0;  ///< of a block (__launch_bounds__); 0: not said
  int capability = 0;              ///< that it was compiled for, 86 for 8.6; 0: not said
};

struct Cubin {
  std::vector<std::byte> bytes;
  int capability = 0;
};

/// Kernels of a cubin (an ELF file of NVIDIA's), by mangled name. Reads .nv.info sections as cuobjdump and nvdisasm
/// print them. Never throws on bad bytes: what cannot be read is left out.
std::map<std::string, KernelBinary> read_cubin(std::span<const std::byte> cubin);

/// The cubin in a fat binary (what nvcc embeds) that a device of compute capability `major`.`minor` would load: of the
/// same major, the largest minor not above. Empty: none. Decompresses LZ4 (CUDA before 12.8) and zstd.
Cubin cubin_for_device(const std::byte* fat_binary, int major, int minor);
/// The same for a fat binary of known length, which bytes from outside need.
Cubin cubin_for_device(std::span<const std::byte> fat_binary, int major, int minor);

}  // namespace tidepool::dry
