// Addresses for a plan that was judged by counting bytes.
#pragma once

#include <memory>
#include <optional>

#include "simulator/run.hpp"
#include "simulator/swap/trials.hpp"
#include "simulator/tide_remat/counted_pool.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A draft and the places of all that its run asks for.
struct PlacedDraft {
  GapDraft draft;
  OnDemand on_demand = OnDemand::kCopy;
  std::shared_ptr<const RepeatedPool::Answers> places;

  /// The policy that follows both.
  std::unique_ptr<Policy> answer() const;
};

struct Placement {
  Bytes height = {};  ///< addresses that the lives in the counted run take; 0: that run did not end well
  PlacedDraft placed;
  std::optional<Result> result;  ///< of the run with places, if the height fits its capacity
};

/// Runs a draft by a sum of bytes up to `limit`, packs the lives of its places, and runs it with them.
/// @param granule  places are multiples of it
/// @param effort   of the packing, as of minimise()
Placement find_placement(const Trace& trace, const RunSpec& spec, const GapDraft& draft, OnDemand on_demand,
                         Bytes limit, Bytes granule, double effort);

}  // namespace tidepool
