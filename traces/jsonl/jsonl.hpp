// The JSON-lines form of a trace: one object per line in program order, for people, small tests and other languages.
// traces/FORMAT.md defines it.
#pragma once

#include <string>

#include "traces/base/input.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The trace as text, every field and id kept: read_jsonl() gives an equal trace back.
std::string to_jsonl(const Trace& trace);

/// @throws InputError  "x.jsonl:12: 'kind' is "actvation"; expected unknown, parameter, ... or input"
Trace read_jsonl(const Input& input);

}  // namespace tidepool
