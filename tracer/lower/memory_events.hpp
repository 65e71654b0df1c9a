// Buffers of a process, from the memory records of the driver and of the framework's allocator, and its ranges.
#pragma once

#include <optional>
#include <vector>

#include "tracer/lower/framework_calls.hpp"
#include "tracer/lower/process_log.hpp"

namespace tidepool {

/// Allocations and frees of one process, in time order.
/// - CUPTI may repeat the driver's records once for each context of a device. Repetitions are left out.
/// - Mapped pages (cuMemMap) are memory; reserved addresses and physical memory alone are not.
/// - If the framework reports its tensors, driver allocations that contain tensors are its segments, and no buffers.
/// All other driver allocations are buffers (workspaces of libraries, communication).
/// - A tensor ends when the allocator gets its memory back (free_completed). In a file without such events, it ends
/// when the program releases it (free_requested).
/// - Host memory (pageable and pinned) and static variables of modules are left out.
/// - If the process has a next program, all memory is freed where that begins.
/// @param as_requested  whether a tensor has the size of its storage, if the framework's hook tells it; otherwise it
/// has the recorded size. A dry run records that of the allocator's block, which may be up to 1 MiB larger
std::vector<GpuMemory> memory_events(const ProcessLog& process, bool as_requested);

/// The ranges of one process. A range that was pushed ends with the pop that takes it from its thread's stack. A range
/// that began with an id ends with the end of that id. An iteration that has only a mark ends at the next such mark.
/// Other marks are left out, since traces have no single points in time. So are ranges without a name.
std::vector<GpuRange> ranges(const ProcessLog& process);

/// The interval from the begin of the first to the end of the last iteration that the framework's hook recorded
/// completely; none if there is no such iteration.
std::optional<TimeSpan> complete_iterations(const ProcessLog& process);

}  // namespace tidepool
