// Addresses for a plan of a tiny step that was found by counting bytes.
#pragma once

#include <optional>
#include <vector>

#include "tests/oracle/state.hpp"

namespace tidepool::optimum {

/// Gives the places of a plan's moves fixed addresses (Move::unit_at, in units of step.unit bytes), by backtracking in
/// at most 5,000 steps.
/// @param step   with Freedom::addresses
/// @param moves  a complete plan for the step, without addresses
/// @return the moves with addresses; none if the search found none, which proves nothing
std::optional<std::vector<Move>> find_places(const TinyStep& step, std::vector<Move> moves);

}  // namespace tidepool::optimum
