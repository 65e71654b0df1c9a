// The capture files of a run.
#pragma once

#include <string>
#include <vector>

#include "tracer/raw/log.hpp"

namespace tidepool {

/// Reads all files of a folder, in the order of their names.
/// @throws InputError  "run.raw: no capture files; expected PID.SOURCE.raw or PID.SOURCE.jsonl in it"
std::vector<raw::Log> read_captures(const std::string& folder);

}  // namespace tidepool
