// Machines and capacities as text. A machine file is one JSON object whose values carry their units; MACHINES.md
// describes it. Capacities are in the notation of the command line.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "simulator/machine.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

/// Reads a machine from JSON text. Only the keys of MACHINES.md are allowed.
/// @param file  for messages only
/// @throws InputError  "box.json: h2d.latency: '10' is not a duration; expected ..."
Machine parse_machine(std::string_view text, const std::string& file);

/// A machine as a file that parse_machine reads back to the same numbers.
std::string machine_file(const Machine& machine);

/// Text of every file in simulator/engine/machine/known/, sorted by name.
std::span<const std::string_view> known_machine_files();

/// Reads "0.5x" or "50%", a share of the peak; none if the text has neither unit.
/// @throws InputError  "'-1x' is not a share of the peak; expected a number and x or %, above 0x and below 1000000x, as
///                     in 0.5x"
std::optional<double> parse_share(std::string_view text);

/// Reads "16GiB", "0.5x" or "50%" (of `ideal_peak`), or "none" (kNoLimit).
/// @throws InputError  for any other text
Bytes parse_capacity(std::string_view text, Bytes ideal_peak);

}  // namespace tidepool
