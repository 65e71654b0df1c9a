// Selection: the choice of gaps that a plan uses. It ignores the times of copies.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/step_circle.hpp"

namespace tidepool {

/// By slot of the step: the limit of the load.
using SlotLimits = std::vector<Bytes>;

/// Scores of a gap. From AutoSwap (Zhang et al., arXiv 1903.06631), section 4.2, as its paper defines them:
///   DOA    duration of absence: time between release and due op minus both copies
///   AOA    area of absence: DOA * size, or DOA / size if DOA is negative
///   WDOA   weighted duration of absence: integral of the load over the gap
///   SWDOA  submodular WDOA: the same, with the load after earlier picks
/// and Tidepool's own:
///   excess  integral over the gap of the load above the limit after earlier picks
enum class GapScore : std::uint8_t { kDoa, kAoa, kWdoa, kSwdoa, kExcess };
/// @throws InputError  for an unknown name
GapScore find_gap_score(std::string_view name);

/// The scores of all gaps; larger is better. For kSwdoa and kExcess, the scores before any pick.
std::vector<double> gap_scores(const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine,
                               GapScore score, const SlotLimits& limits);

struct Selection {
  std::vector<std::uint32_t> gaps;  ///< indices, in the order in which they were picked
  Bytes peak;                       ///< of the remaining load, if copies take no time
  bool fits = false;                ///< whether the remaining load is within all limits
};

/// Picks gaps by descending score (ties: the first in the list) until the load is within all `limits`. Skips gaps in
/// which no slot is above its limit after the earlier picks. Only gaps with `allowed[i]` are considered; empty: all.
/// O(slots + gaps log gaps + gaps log slots).
Selection select_by_score(const StepCircle& circle, const std::vector<Gap>& gaps, const std::vector<double>& scores,
                          const SlotLimits& limits, const std::vector<bool>& allowed = {});

/// The same for kSwdoa or kExcess, whose scores earlier picks lower. Evaluates lazily, since a score never rises. Exact
/// for the first 64 picks; later, scores may be out of date by a sixteenth of the picks so far.
Selection select_submodular(const StepCircle& circle, const std::vector<Gap>& gaps, GapScore score,
                            const SlotLimits& limits, const std::vector<bool>& allowed = {});

/// Selects with select_by_score() or select_submodular(), as the score needs.
Selection select_gaps(const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine, GapScore score,
                      const SlotLimits& limits, const std::vector<bool>& allowed = {});

}  // namespace tidepool
