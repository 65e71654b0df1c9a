// A job that is recorded without a GPU, to see what memory it takes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// A recorded job.
struct DryRecording {
  Trace trace;
  bool stopped = false;  ///< it took longer than it was given
  std::string failure;   ///< if it or the recorder failed by itself: the last line said, which is not empty; else ""
  std::string said;      ///< then: the last lines that were said
};

/// Runs `tidepool record --dry --torch` in a folder of its own, on a device like the named one with so much memory that
/// nothing is ever out of it. A job that takes longer than `seconds` of wall time is stopped; what it did until then is
/// the trace.
/// @return  nothing if Ctrl-C or SIGTERM came meanwhile, see Interruptible; job and folder are gone then
/// @throws InputError  "python3 train.py: nothing was recorded", with what the job and the recorder said
std::optional<DryRecording> record_dry(const std::vector<std::string>& command, const std::string& device, int seconds);

}  // namespace tidepool
