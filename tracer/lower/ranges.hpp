// Ranges and iterations of a program, from its pushes, pops and marks.
#pragma once

#include <optional>
#include <vector>

#include "tracer/lower/framework_calls.hpp"
#include "tracer/lower/process_log.hpp"

namespace tidepool {

/// The ranges of one process. A range that was pushed ends with the pop that takes it from its thread's stack. A range
/// that began with an id ends with the end of that id. An iteration that has only a mark ends at the next such mark.
/// Other marks are left out, since traces have no single points in time. So are ranges without a name.
std::vector<GpuRange> ranges(const ProcessLog& process);

/// The interval from the begin of the first to the end of the last iteration that the framework's hook recorded
/// completely; none if there is no such iteration.
std::optional<TimeSpan> complete_iterations(const ProcessLog& process);

}  // namespace tidepool
