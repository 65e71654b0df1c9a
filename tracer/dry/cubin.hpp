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
  std::uint32_t registers = 0;     ///< of a thread; 0: not stated
  std::uint32_t shared_bytes = 0;  ///< static shared memory of a block
  std::uint32_t most_threads = 0;  ///< of a block (__launch_bounds__); 0: not stated
  int capability = 0;              ///< of the device that it was compiled for, 86 for 8.6; read_cubin() leaves 0
};

struct Cubin {
  std::vector<std::byte> bytes;
  int capability = 0;  ///< of the device that it was compiled for, 86 for 8.6; 0: there is no cubin
};

/// Kernels of a cubin (an ELF file of NVIDIA's), by mangled name. The format of .nv.info sections follows the output of
/// cuobjdump and nvdisasm. Bad bytes never throw: an attribute of unknown form and all that follow it are left out, and
/// so is a parameter whose attribute is cut off. Other missing bytes count as zeros.
std::map<std::string, KernelBinary> read_cubin(std::span<const std::byte> cubin);

/// The cubin that a device of compute capability `major`.`minor` would load from a fat binary (the container that nvcc
/// embeds): of the same major version, the one with the largest minor version that is not above `minor`. Decompresses
/// LZ4 (CUDA before 12.8) and zstd. Without bytes and capability if there is no such cubin, or if it cannot be
/// decompressed or would have more than 128 MiB then.
Cubin cubin_for_device(const std::byte* fat_binary, int major, int minor);
/// The same for a fat binary of known length, such as one from a file: no read goes beyond the end.
Cubin cubin_for_device(std::span<const std::byte> fat_binary, int major, int minor);

/// The cubin in an image that a program loads itself: a cubin, or a fat binary. Without bytes for other images (PTX).
Cubin cubin_of_image(std::span<const std::byte> image, int major, int minor);
/// The whole image at `begin`, if it is a cubin or a fat binary: either states its length. Empty for other images.
std::span<const std::byte> whole_image(const std::byte* begin);

}  // namespace tidepool::dry
