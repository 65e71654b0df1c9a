// Number of blocks of a kernel that a multiprocessor can hold.
#pragma once

#include <cstddef>

#include "tracer/dry/cubin.hpp"
#include "tracer/dry/preset.hpp"

namespace tidepool::dry {

/// Threads of the largest block that the kernel can be launched with.
int most_threads(const KernelBinary& kernel);

/// Bytes of shared memory that the driver takes of each block: 1 KiB from compute capability 8.0 on.
std::size_t reserved_shared(const DevicePreset& device);

/// Resident blocks of `threads` threads with `shared_bytes` of dynamic shared memory: the least of the numbers that
/// threads, registers, shared memory and the limit on blocks allow. Each of four partitions has a quarter of the
/// registers and gives a warp units of 256. A block gets shared memory in units of 128 B (256 B before compute
/// capability 8.0). 0 if the kernel cannot be launched so. CUDA C++ Programming Guide, "Occupancy".
int blocks_per_multiprocessor(const DevicePreset& device, const KernelBinary& kernel, int threads,
                              std::size_t shared_bytes);

}  // namespace tidepool::dry
