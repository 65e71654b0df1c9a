// Buffers from what the driver and the framework's allocator say about memory.
#pragma once

#include <vector>

#include "tracer/lower/process_log.hpp"

namespace tidepool {

/// Allocations and frees of one process, in time.
/// - The driver's records come once for each context of a device (CUPTI does that): repetitions are left out.
/// - Mapped pages (cuMemMap) are memory; reserved addresses and physical memory alone are not.
/// - Where the framework says what its tensors are, the driver's allocations in which they lie are its segments, and no
///   buffers. All others are (workspaces of libraries, communication).
/// - A tensor ends when the allocator has it back (free_completed); when it is let go (free_requested) in a file that
///   does not say the former.
/// - Pageable and pinned host memory is left out.
/// @param as_requested  a tensor has the size that its storage has, where the framework's hook says it; otherwise that of the
///                      block that its allocator gave out, which is up to 1 MiB larger where PyTorch does not split one
std::vector<GpuMemory> memory_events(const ProcessLog& process, bool as_requested);

}  // namespace tidepool
