#include "simulator/hybrid/placement.hpp"

#include <algorithm>
#include <utility>

#include "simulator/tide_remat/stand_in.hpp"

namespace tidepool {

std::unique_ptr<Policy> PlacedDraft::answer() const {
  return std::make_unique<StandIn>(follow_draft(draft, on_demand), std::make_unique<RepeatedPool>(places));
}

Placer::Counted Placer::count(const GapDraft& draft, Bytes limit, std::optional<double> overhead_limit) {
  ++judged_;
  RunSpec counted = spec_;
  counted.capacity = limit;
  counted.overhead_limit = overhead_limit;
  auto log = std::make_shared<PlaceLog>();
  Result result = judge(trace_, counted,
                        std::make_unique<StandIn>(follow_draft(draft, on_demand_),
                                                  std::make_unique<CountedPool>(limit, granule_, log), nullptr, log));
  return {std::move(result), std::move(log)};
}

FoundPlaces Placer::pack(const PlaceLog& log, Packing packing) const {
  constexpr std::size_t kMany = 8'000;  // lives: a search takes seconds, and one pass is a few per mille above it
  // Few large lives are hard to pack and quick to search.
  const double thorough = std::clamp(8'000.0 / static_cast<double>(log.lives.size() + 1), 2.0, 40.0);
  const double effort = log.lives.size() > kMany ? 0 : packing == Packing::kQuick ? 0.5 : thorough;
  return find_places(log, granule_, spec_.capacity, effort);
}

Placer::Placed Placer::follow(const GapDraft& draft, const PlaceLog& log, const FoundPlaces& places) {
  ++judged_;
  Placed placed{{draft, on_demand_, {}}, {}};
  placed.draft.places = std::make_shared<const RepeatedPool::Answers>(
      RepeatedPool::answers_of(log, places.offsets, trace_.versions().size()));
  placed.result = judge(trace_, spec_, placed.draft.answer());
  return placed;
}

Placement find_placement(Placer& placer, const RunSpec& spec, const GapDraft& draft, Bytes limit) {
  const Placer::Counted counted = placer.count(draft, limit, spec.overhead_limit);
  if (counted.result.outcome != Outcome::kOk) return {};
  const FoundPlaces found = placer.pack(*counted.log, Placer::Packing::kThorough);
  Placement placement{found.height, {}};
  if (found.height <= spec.capacity) placement.placed = placer.follow(draft, *counted.log, found);
  return placement;
}

}  // namespace tidepool
