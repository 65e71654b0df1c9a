// Raw capture files as JSON lines, which a framework's hook writes with nothing but its language's own library.
#pragma once

#include <string_view>

#include "tracer/raw/log.hpp"
#include "traces/input.hpp"

namespace tidepool::raw {

bool looks_raw_json(std::string_view head);

/// The lines up to the last line end; what is behind it is cut off.
/// @throws InputError  "x.jsonl:12: 'action' is \"alok\"; expected unknown, alloc, ..."
Log read_raw_json(const Input& input);

}  // namespace tidepool::raw
