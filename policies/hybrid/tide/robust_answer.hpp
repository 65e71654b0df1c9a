// The most robust of the answers that a planner has found.
#pragma once

#include <cstdint>

#include "policies/hybrid/tide/best_answer.hpp"

namespace tidepool {

/// The answer that loses the least in its worst scenario (see scenarios_around), of all that two searches found. If no
/// run ends well, the answer of the first search.
/// @param careful  found for slower links
/// @param robust   share by which ops and links may be slower, 0 to 0.99
/// @param judged   number of simulated plans; increased by those of this call
BestAnswer::Answer most_robust(const BestAnswer& best, const BestAnswer& careful, const Trace& trace,
                               const RunSpec& spec, double robust, std::uint64_t seed, std::int64_t& judged);

}  // namespace tidepool
