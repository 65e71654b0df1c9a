// Executes a plan on the memory of this machine: real bytes, one thread per lane, every read compared.
#pragma once

#include <cstddef>
#include <optional>

#include "simulator/plan.hpp"
#include "traces/trace.hpp"
#include "validator/execution/execution_report.hpp"

namespace tidepool {

struct HostOptions {
  bool copy_on_write = false;  ///< see Assumptions::copy_on_write
  bool threads = true;         ///< one per lane; without, everything is done in issue order
  Bytes arena = 256_MiB;       ///< most memory for content; larger plans are scaled down, a word for many bytes
  Nanos patience = Nanos{60'000'000'000};  ///< nothing ends for so long while a lane waits: the run is stuck
  bool detail = false;                     ///< keep when every op and copy was executed

  /// For tests that the checks can fail: what a backend might get wrong.
  struct Faults {
    std::optional<Verb> ignore_waits_on = {};  ///< nobody waits for kSwapOut, kSwapIn or kRun
    Nanos late_copies = {};                    ///< copies to and from the host begin so much later
    bool redraw = false;                       ///< a random op that runs again draws again
  } faults = {};
};

using HostReport = ExecutionReport;
using HostOutcome = ExecutionOutcome;

/// Executes `plan`. An op compares every word of its inputs with what they should hold and writes outputs whose words
/// depend on what it found; in-place updates replace the bytes where they are; places that end are cleared. At the end
/// every output of the trace is compared, wherever it is.
/// @throws PlanError   for a plan that no memory could execute, naming the action
/// @throws InputError  for a plan that has more pieces than `arena` has words
HostReport execute_on_host(const Trace& trace, const Plan& plan, const HostOptions& options = {});

}  // namespace tidepool
