// Writing a job: its file, and a trace file for each rank beside it.
#pragma once

#include <string>

#include "traces/job/job.hpp"

namespace tidepool {

/// Refuses a path at which there is something else than a file, or that cannot be written (see require_writable()).
/// @throws InputError  "out: is no file; expected a file, with the traces beside it"
void require_file_name(const std::string& path);

/// Writes JOB.json and, beside it, JOB.rank0.tide, JOB.rank1.tide, .... All files are written under other names before
/// the first is renamed, so none is replaced if the content of one cannot be written. Ranks with equal traces have one
/// file, that of the first. Trace files of an earlier job at this path are removed if the new job does not name them.
/// Sets the paths and hashes of the job's traces.
void write_job(const std::string& path, LoadedJob& job);

}  // namespace tidepool
