#include "simulator/hybrid/placement.hpp"

#include "simulator/tide_remat/places.hpp"
#include "simulator/tide_remat/stand_in.hpp"

namespace tidepool {

std::unique_ptr<Policy> PlacedDraft::answer() const {
  return std::make_unique<StandIn>(follow_draft(draft, on_demand), std::make_unique<RepeatedPool>(places));
}

Placement find_placement(const Trace& trace, const RunSpec& spec, const GapDraft& draft, OnDemand on_demand,
                         Bytes limit, Bytes granule, double effort) {
  Placement placement{{}, {draft, on_demand, {}}, {}};
  RunSpec counted = spec;
  counted.capacity = limit;
  const auto log = std::make_shared<PlaceLog>();
  const Result result =
      judge(trace, counted,
            std::make_unique<StandIn>(follow_draft(draft, on_demand),
                                      std::make_unique<CountedPool>(limit, granule, log), nullptr, log));
  if (result.outcome != Outcome::kOk) return placement;
  constexpr std::size_t kMany = 8'000;  // lives: a search takes seconds, and one pass is a few per mille above it
  const FoundPlaces found = find_places(*log, granule, spec.capacity, log->lives.size() > kMany ? 0 : effort);
  placement.height = found.height;
  if (found.height > spec.capacity) return placement;
  placement.placed.places = std::make_shared<const RepeatedPool::Answers>(
      RepeatedPool::answers_of(*log, found.offsets, trace.versions().size()));
  placement.result = judge(trace, spec, placement.placed.answer());
  return placement;
}

}  // namespace tidepool
