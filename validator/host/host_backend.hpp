// Execution of a plan on the memory of this machine: real bytes, one thread per lane, every read compared.
#pragma once

#include <cstddef>
#include <optional>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"
#include "validator/execution/execution_report.hpp"

namespace tidepool {

struct HostOptions {
  bool copy_on_write = false;  ///< see Assumptions::copy_on_write
  bool threads = true;         ///< one per lane; without them, all tasks run in issue order
  Bytes arena = 256_MiB;       ///< most memory for content; larger plans are scaled down: one word for many bytes
  Nanos patience = Nanos{60'000'000'000};  ///< the run is stuck if a lane waits and no task ends for this time
  bool detail = false;                     ///< record the times of every op and copy

  /// Faults of a backend. Tests switch them on to show that the checks find them.
  struct Faults {
    std::optional<Verb> ignore_waits_on = {};  ///< kSwapOut, kSwapIn or kRun: no task waits for such tasks
    Nanos late_copies = {};                    ///< delay of the begin of copies to and from the host
    bool redraw = false;                       ///< reruns of random ops draw again
  } faults = {};
};

using HostReport = ExecutionReport;
using HostOutcome = ExecutionOutcome;

/// Executes `plan`. An op compares every word of its inputs with the expected content and writes outputs whose words
/// depend on the words that it read; in-place updates replace the bytes at their place; places that end are cleared. At
/// the end, every output of the trace is compared, on the device or on the host. The expected content is that of the
/// recorded order, also if the plan has an order of its own.
/// @throws PlanError   for a plan that no memory could execute, naming the action
/// @throws InputError  for a plan that has more pieces than `arena` has words
HostReport execute_on_host(const Trace& trace, const Plan& plan, const HostOptions& options = {});

}  // namespace tidepool
