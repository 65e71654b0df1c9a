// Measurement of a plan's time on a machine without a device: copies move real bytes, ops only take their time.
#pragma once

#include "simulator/machine.hpp"
#include "simulator/plan.hpp"
#include "traces/trace.hpp"
#include "validator/execution/execution_report.hpp"
#include "validator/host/host_link.hpp"

namespace tidepool {

struct HostTimingOptions {
  bool copy_on_write = false;  ///< see Assumptions::copy_on_write
  HostLinks* links = nullptr;  ///< swaps move their bytes on them; null: swaps only wait for their time
  /// 1e-6 to 1e6: ops, copies within the device, and swaps that move nothing take this multiple of their time.
  double time_scale = 1;
  Machine machine = {};                    ///< times copies within the device, and swaps that move nothing
  Nanos patience = Nanos{60'000'000'000};  ///< stuck if no task ends for this time plus the longest task's
};

/// Executes `plan` with one thread per lane and without content. Nothing is filled, compared or cleared, and all tasks
/// are made before the first one begins, so that the measured time contains no checks.
///
/// An op or a copy within the device stands for a kernel, which the host's scheduler cannot delay. Its duration counts
/// from the latest end of the tasks that it waited for, even if its thread learnt of that end later. So its thread may
/// sleep, which leaves the cores to the copies, and late wake-ups do not add up. A swap has the real begin and end of
/// its thread's work.
/// @param trace  the recorded step; the plan may have an order of its own
/// @return  with `measured`, the time from begin to end of the run, and `times`, both divided by the time scale.
///          Without these and with kStuck, if no task ended within the patience
/// @throws PlanError  for a plan that no memory could execute, naming the action
ExecutionReport time_on_host(const Trace& trace, const Plan& plan, const HostTimingOptions& options);

}  // namespace tidepool
