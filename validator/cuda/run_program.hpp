// Execution of a program on a GPU: one piece of device memory, one of pinned host memory, a stream for each lane.
#pragma once

#include <string>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"
#include "validator/cuda/device.hpp"
#include "validator/cuda/run_memory.hpp"
#include "validator/execution/device_program.hpp"
#include "validator/execution/execution_report.hpp"

namespace tidepool::cuda {

struct RunOptions {
  bool timed = false;              ///< record the times of every op and copy; for a program without content
  bool graph = false;              ///< submit everything as one CUDA graph
  RunMemory* memory = nullptr;     ///< shared with earlier runs of the same plan; null: the run's own
  Nanos patience{60'000'000'000};  ///< the run is stuck if it takes this much longer than a generous estimate
};

/// Each op becomes kernels that together take the recorded duration. In a run that is not timed, an op also compares
/// every word that it reads, and writes words that depend on these, exactly as on the host backend. A timed run leaves
/// out this work, which would disturb the timing.
/// A refusal or failure of the device is an outcome with the failed call, not an exception. Every wait has a time
/// limit. After kStuck, and after a refusal or failure once the run has its memory, nothing of the device is released
/// any more, so it should not be used again. This does not hold if memory was short while no work was under way.
/// @param trace    PlannedStep::trace() of the plan
/// @param program  made from the plan
/// @throws PlanError  for a program that touches memory that it does not have
ExecutionReport run_program(const Gpu& gpu, const Trace& trace, const Plan& plan, const DeviceProgram& program,
                            const RunOptions& options);

}  // namespace tidepool::cuda
