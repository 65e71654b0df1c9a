// Selection: which absences a plan uses. The first of the four decisions; it knows nothing of when copies are issued.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/step_circle.hpp"

namespace tidepool {

/// By slot of the step: what the load should not exceed there.
using SlotLimits = std::vector<Bytes>;

/// What a gap is worth. Of AutoSwap (Zhang et al., arXiv 1903.06631), section 4.2, as its paper means them:
///   DOA    duration of absence: time between release and due op less both copies
///   AOA    area of absence: DOA * size, or DOA / size where DOA is negative
///   WDOA   weighted duration of absence: integral of the load over the gap
///   SWDOA  submodular WDOA: the same with the load that earlier picks have left
/// and ours:
///   excess  integral over the gap of what earlier picks have left above the limit
enum class GapScore : std::uint8_t { kDoa, kAoa, kWdoa, kSwdoa, kExcess };
/// @throws InputError  for an unknown name
GapScore find_gap_score(std::string_view name);

/// The scores of all gaps, larger is better; for kSwdoa and kExcess those before anything is picked.
std::vector<double> gap_scores(const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine,
                               GapScore score, const SlotLimits& limits);

struct Selection {
  std::vector<std::uint32_t> gaps;  ///< indices, in the order in which they were picked
  Bytes peak;                       ///< load that is left if copies take no time
  bool fits = false;                ///< whether that is nowhere above the limits
};

/// Picks gaps by descending score (ties: the one that comes first) until the load is nowhere above `limits`, skipping
/// those during which it is not. Only gaps with `allowed[i]` are considered; empty: all. O(slots +
/// gaps log gaps + gaps log slots).
Selection select_by_score(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<double>& scores,
                          const SlotLimits& limits, const std::vector<bool>& allowed = {});

/// The same with scores that earlier picks lower: kSwdoa or kExcess. By lazy evaluation: a score never rises. Exact for
/// the first 64 picks; scores of those behind may be from a sixteenth of the picks before.
Selection select_submodular(const StepCircle& circle, const std::vector<Gap>& gaps, GapScore score,
                            const SlotLimits& limits, const std::vector<bool>& allowed = {});

/// Whichever of the two a score asks for.
Selection select_gaps(const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine, GapScore score,
                      const SlotLimits& limits, const std::vector<bool>& allowed = {});

}  // namespace tidepool
