// A job that is recorded without a GPU, to see what memory it takes.
#pragma once

#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// A recorded job.
struct DryRecording {
  Trace trace;
  std::string said;  ///< by the job and the recorder, if one of them did not end well; else ""
};

/// Runs `tidepool record --dry --torch` in a folder of its own, on a device like the named one with so much memory that
/// nothing is ever out of it. A job that takes longer than `seconds` of wall time is stopped; what it did until then is
/// the trace.
/// @throws InputError  "python3 train.py: nothing was recorded", with what the job and the recorder said
DryRecording record_dry(const std::vector<std::string>& command, const std::string& device, int seconds);

}  // namespace tidepool
