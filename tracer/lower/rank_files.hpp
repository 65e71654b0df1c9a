// The capture files of a run, and of each rank of a job.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tracer/raw/log.hpp"

namespace tidepool {

/// The number of ranks whose processes wrote files. A process records its rank; if it does not, its rank in its largest
/// communicator counts.
std::size_t count_ranks(const std::vector<raw::Log>& logs);

/// The files of each rank of a job, by rank. Files of processes without a rank are left out.
/// @throws InputError  "run.raw: recordings of ranks 0, 2; expected one of each rank, 0 to 2"
std::map<std::size_t, std::vector<raw::Log>> by_rank(const std::string& folder, std::vector<raw::Log> logs);

/// Reads the files of a folder whose names contain .raw or .jsonl, in the order of their names. Leaves out files
/// without a complete header.
/// @throws InputError  "run.raw: no capture files; expected PID.SOURCE.raw or PID.SOURCE.jsonl in it"
std::vector<raw::Log> read_captures(const std::string& folder);

}  // namespace tidepool
