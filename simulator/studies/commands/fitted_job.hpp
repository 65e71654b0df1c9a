// The job that `tidepool fit` judges.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "simulator/studies/fit/dry_recording.hpp"
#include "traces/import/torch_snapshot.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The job to judge, with facts about it that the trace does not have.
struct FittedJob {
  std::string name;
  std::vector<std::string> command = {};  ///< the recorded command; empty: the job is a file
  Trace trace;
  std::optional<Trace> worst = {};         ///< with `--routing worst`, if sizes of `trace` were assumed
  std::optional<RecordedMemory> recorded;  ///< only for a snapshot and a profile that says it
  std::optional<SnapshotHistory> history;  ///< only for a snapshot
  std::size_t devices = 1;                 ///< of the snapshot: those with memory
  bool stopped = false;                    ///< the recording was stopped after --seconds
  std::string failure, hint, said;         ///< see DryRecording; "" if the job did not fail
};

/// The job of a trace, a snapshot or another file with one.
/// @throws InputError  as load_trace() and parse_torch_snapshot()
FittedJob job_of_file(const std::string& path);

/// The job of a recorded command.
/// @param recording  of one process
FittedJob job_of_recording(const std::vector<std::string>& command, DryRecording recording);

}  // namespace tidepool
