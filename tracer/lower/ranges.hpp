// Ranges and marks of a program, from pushes and pops.
#pragma once

#include <optional>
#include <vector>

#include "tracer/lower/framework_calls.hpp"
#include "tracer/lower/process_log.hpp"

namespace tidepool {

/// The ranges of one process. A push ends with the next pop of its thread, a begin with the end of its id. A mark of an
/// iteration begins it; it ends with the next one. Other marks are moments, which a trace has no place for.
std::vector<GpuRange> ranges(const ProcessLog& process);

/// From the begin of the first to the end of the last iteration of which the framework's hook recorded both; nothing if
/// it recorded none, or no iterations.
std::optional<TimeSpan> complete_iterations(const ProcessLog& process);

}  // namespace tidepool
