// Raw capture files as JSON lines, which a framework's hook writes with the standard library of its language.
#pragma once

#include <string_view>

#include "tracer/raw/log.hpp"
#include "traces/base/input.hpp"

namespace tidepool::raw {

/// Whether a file begins like a raw capture file of JSON lines.
bool looks_raw_json(std::string_view head);

/// Reads the lines up to the last line end. Bytes after it are a cut-off line, counted in Log::cut_off_bytes.
/// @throws InputError  "x.jsonl:12: 'action' is \"alok\"; expected unknown, alloc, ..."
Log read_raw_json(const Input& input);

}  // namespace tidepool::raw
