// Executes a program on a GPU: one piece of device memory, one of pinned host memory, a stream for each lane.
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
  bool timed = false;              ///< keep when every op and copy was executed
  bool graph = false;              ///< submit everything as one CUDA graph
  RunMemory* memory = nullptr;     ///< of earlier runs of the same plan; none: the run's own
  Nanos patience{60'000'000'000};  ///< beyond a generous estimate of the run: it is stuck
};

/// Every op is kernels that together take the recorded duration; a program with content also compares every word that
/// it reads, and writes what follows from what it found, exactly as the host backend does. A program without is timed
/// undisturbed by that.
/// Whatever the device or its driver refuses is an outcome, with what was asked: it never throws for that, and no wait
/// is without end. After kStuck, and after kDeviceError, the device is of no more use.
/// @param program  made from `trace` and `plan`
/// @throws PlanError  for a program that touches memory that it does not have
ExecutionReport run_program(const Gpu& gpu, const Trace& trace, const Plan& plan, const DeviceProgram& program,
                            const RunOptions& options);

}  // namespace tidepool::cuda
