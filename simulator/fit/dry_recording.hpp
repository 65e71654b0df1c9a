// Recording of a job without a GPU, to see how much memory it takes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

constexpr const char* kEndlessMemory = "4096GiB";  ///< of a stand-in for a device, as `record --capacity` takes it

/// A recorded job, and how its recording ended.
struct DryRecording {
  Trace trace;
  bool stopped = false;  ///< the job ran out of its wall time
  std::string failure;   ///< last line of output if the job or the recorder failed by itself, never empty then; else ""
  std::string said;      ///< the last lines of output if it failed
};

/// Runs `tidepool record --dry --torch` in a folder of its own, on a device like the named one whose memory
/// never runs out. A job that takes longer than `seconds` of wall time is stopped; the trace then ends
/// there.
/// @return  none after Ctrl-C or SIGTERM, see Interruptible; job and folder are gone then
/// @throws InputError  "python3 train.py: nothing was recorded", with what the job and the recorder said
std::optional<DryRecording> record_dry(const std::vector<std::string>& command, const std::string& device, int seconds);

}  // namespace tidepool
