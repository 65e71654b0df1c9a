// Answers of sweep --find, for people and scripts.
#pragma once

#include <span>
#include <string>

#include "simulator/studies/sweep/least_capacity.hpp"

namespace tidepool {

/// Prints a table for each trace and machine, or one JSON object for each answer. An object has the keys of the
/// answer's run, and "find", "found", "runs_looked_at", "capacities" and "fails_above_bytes".
void print_answers(std::span<const Answer> answers, const std::string& objective, std::span<const SweepPart> parts,
                   const Database& database, bool json);

}  // namespace tidepool
