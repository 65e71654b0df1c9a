// Addresses for a plan that was found by counting bytes.
#pragma once

#include <optional>
#include <vector>

#include "simulator/optimum/state.hpp"

namespace tidepool::optimum {

/// The same moves with places that do not move, if such places are found in a few thousand tries.
/// @param step  with addresses
std::optional<std::vector<Move>> find_places(const TinyStep& step, std::vector<Move> moves);

}  // namespace tidepool::optimum
