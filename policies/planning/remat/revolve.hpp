// Orders that keep only the inputs of some stages: binomial checkpointing and segments.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/remat/chain.hpp"

namespace tidepool {

/// The least number of forward runs to reverse `stages` stages of equal time with memory for the inputs of `slots`
/// stages besides the first. The last forward run before each backward step saves the values of that step and is not
/// counted:
///   R(1, s) = 0,  R(l, 0) = l (l - 1) / 2,  R(l, s) = min over k in [1, l) of k + R(l - k, s - 1) + R(k, s)
/// which is r l - C(c + r, r - 1) with c = slots + 1 and r least such that C(c + r, c) >= l.
/// Paper: Griewank and Walther, "Algorithm 799: revolve", ACM TOMS 26(1), 2000.
std::int64_t revolve_sweeps(std::size_t stages, std::size_t slots);

/// The order that takes revolve_sweeps() forward runs. O(stages^2 * slots).
ChainSequence revolve(std::size_t stages, std::size_t slots);

/// Checkpoints at the inputs of the stages `starts` (ascending; stage 0 is always a checkpoint). One sweep keeps these
/// and the whole last segment, which is reversed. Then each other segment, from back to front, runs again from its
/// checkpoint, is kept whole, and is reversed.
ChainSequence in_segments(std::size_t stages, const std::vector<std::size_t>& starts);

/// As in_segments(), with `checkpoints` checkpoints (at least 1) at equal distances; but each segment is divided again
/// in the same way, down to single stages. Paper: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016,
/// section 4.4.
ChainSequence in_nested_segments(std::size_t stages, std::size_t checkpoints);

}  // namespace tidepool
