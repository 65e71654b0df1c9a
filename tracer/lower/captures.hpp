// The capture files of a run.
#pragma once

#include <string>
#include <vector>

#include "tracer/raw/log.hpp"

namespace tidepool {

/// Reads the files of a folder whose names contain .raw or .jsonl, in the order of their names. Leaves out files
/// without a complete header.
/// @throws InputError  "run.raw: no capture files; expected PID.SOURCE.raw or PID.SOURCE.jsonl in it"
std::vector<raw::Log> read_captures(const std::string& folder);

}  // namespace tidepool
