// Copies in the solution of the fluid linear program.
#pragma once

#include <optional>
#include <vector>

#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// The best fluid plan of a repeated step (see fluid_bound), for content that is dropped in any case.
struct FluidCopies {
  double time = 0;             ///< ns of the step: its ops, the reruns, and the waits for copies
  std::vector<double> shares;  ///< by gap: the share of its bytes that is copied; 0 if it is dropped
  std::vector<Nanos> start;    ///< start times of the ops and the end of the step, with waits, without reruns
  std::vector<double> prices;  ///< by op: ns that one byte less in memory during it would save
};

/// Solves the fluid program of a step in which some gaps are dropped at their releases. Their reruns lengthen the step,
/// and what reruns hold takes memory. Links have the mean rate of the copies of all gaps, latency included. Short ops
/// are merged, up to a few hundred slots. None if no plan exists, for several streams, and for more than 6,000 ops and
/// gaps.
std::optional<FluidCopies> fluid_copies(const Planning& planning, const std::vector<std::uint32_t>& dropped);

/// By gap: the share of its bytes that the best fluid plan of a repeated step without drops copies. Ties are broken by
/// the length of the gap. Empty if no plan exists, for several streams, and for more than 6,000 ops and gaps.
std::vector<double> fluid_shares(const Planning& planning);

}  // namespace tidepool
