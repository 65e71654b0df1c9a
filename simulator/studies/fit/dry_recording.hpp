// Recording of a job without a GPU, to see how much memory it takes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/studies/fit/device_budget.hpp"
#include "traces/base/error.hpp"
#include "traces/job/job.hpp"
#include "traces/trace.hpp"

namespace tidepool {

constexpr const char* kEndlessMemory = "4096GiB";  ///< memory that no job fills, as `record --capacity` takes it

/// Options of `record --dry`.
struct DryWay {
  std::string capacity = kEndlessMemory, routing = "balanced";
};

/// A recorded job, and how its recording ended.
struct DryRecording {
  std::vector<Trace> traces;  ///< of the process, or of each rank
  std::optional<Job> job;     ///< of several ranks
  bool stopped = false;       ///< the job ran out of its wall time
  std::string failure;  ///< the job's last line of output if the job or the recorder failed (never empty); else ""
  std::string hint;     ///< what the recorder said about a dry run's zeros, as a possible reason; "" if nothing
  std::string said;     ///< the last lines of output if the job or the recorder failed; else ""
};

/// A job ran out of its wall time before it used the device, so that there is no trace of it.
class StoppedUnrecorded : public InputError {
 public:
  using InputError::InputError;
};

/// Runs `tidepool record --dry --torch --kernels` on a simulated device of this name, whose memory never runs out by
/// default, and keeps the traces in a temporary folder. The job is told that it has the memory of `device`. A job that
/// takes longer than `seconds` of wall time is stopped,
/// and its traces end there.
/// @return  none after Ctrl-C or SIGTERM, see Interruptible; the job has ended then and its folder is removed
/// @throws InputError  "python3 train.py: nothing was recorded", with what the job and the recorder said
/// @throws StoppedUnrecorded  "the job was stopped after 300 s, before it used the device; --seconds gives it more
///                            time"
std::optional<DryRecording> record_dry(const std::vector<std::string>& command, const DeviceBudget& device, int seconds,
                                       const DryWay& way = {});

/// The device that a dry run recorded a trace for, as `record --device` takes it; "" if there was none.
std::string dry_device(const Trace& trace);

/// The rank that a trace is of, as the job's RANK says; "" if it said none.
std::string dry_rank(const Trace& trace);

/// Runs `tidepool record --dry --torch`, with a change of the script.
/// @param device  as `record --device` takes it; its memory never runs out
/// @param rank    whose steps are wanted, as dry_rank() says it
/// @param change  a Python file with apply(), as Change::code has it
/// @return  the recorded steps; none after Ctrl-C or SIGTERM
/// @throws InputError  "python3 train.py: nothing of one process was recorded" (or of rank 2), or "...: the change was
///                     not applied", with what was said
std::optional<Trace> record_changed(const std::vector<std::string>& command, const std::string& device,
                                    const std::string& rank, const std::string& change);

}  // namespace tidepool
