// Machine files: one JSON object whose values carry their units. MACHINES.md describes them.
#pragma once

#include <string>
#include <string_view>

#include "simulator/machine.hpp"

namespace tidepool {

/// Reads a machine from JSON text. Only the keys of MACHINES.md are allowed.
/// @param file  for messages only
/// @throws InputError  "box.json: h2d.latency: '10' is not a duration; expected ..."
Machine parse_machine(std::string_view text, const std::string& file);

/// A machine as a file that parse_machine reads back to the same numbers.
std::string machine_file(const Machine& machine);

}  // namespace tidepool
