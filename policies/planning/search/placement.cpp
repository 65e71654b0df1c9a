#include "policies/planning/search/placement.hpp"

#include <algorithm>
#include <utility>

#include "policies/planning/search/pooled_policy.hpp"

namespace tidepool {

std::unique_ptr<Policy> PlacedDraft::answer() const {
  return std::make_unique<PooledPolicy>(follow_draft(draft, on_demand), std::make_unique<RepeatedPool>(places));
}

Placer::Counted Placer::count(const GapDraft& draft, Bytes limit, std::optional<double> overhead_limit) {
  ++judged_;
  RunSpec counted = spec_;
  counted.capacity = limit;
  counted.overhead_limit = overhead_limit;
  auto log = std::make_shared<PlaceLog>();
  Result result =
      judge(trace_, counted,
            std::make_unique<PooledPolicy>(follow_draft(draft, on_demand_),
                                           std::make_unique<CountedPool>(limit, granule_, log), nullptr, log));
  return {std::move(result), std::move(log)};
}

bool Placer::searches(const PlaceLog& log) {
  constexpr std::size_t kMany = 8'000;  // lives: a search takes seconds, and one pass is a few per mille above it
  return log.lives.size() <= kMany;
}

FoundPlaces Placer::pack(const PlaceLog& log, Packing packing) const {
  if (!searches(log)) return find_places(log, granule_, spec_.capacity, 0);
  // Few large lives are hard to pack and quick to search.
  const double few = 8'000.0 / static_cast<double>(log.lives.size() + 1);
  const double effort = packing == Packing::kQuick      ? std::clamp(few / 20, 0.5, 1.5)
                        : packing == Packing::kThorough ? std::clamp(few, 2.0, 40.0)
                                                        : std::clamp(few * 5, 20.0, 100.0);
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
  Placement placement{counted.result, {}, {}};
  if (counted.result.outcome != Outcome::kOk) return placement;
  FoundPlaces found = placer.pack(*counted.log, Placer::Packing::kThorough);
  const Bytes little = spec.capacity / 200;
  if (found.height > spec.capacity && found.height <= spec.capacity + little && Placer::searches(*counted.log))
    found = placer.pack(*counted.log, Placer::Packing::kHard);
  placement.height = found.height;
  if (found.height <= spec.capacity) placement.placed = placer.follow(draft, *counted.log, found);
  return placement;
}

Result with_excess(Result counted, Bytes height, const RunSpec& spec) {
  const double excess = static_cast<double>(std::max(height - spec.capacity, Bytes{}).count());
  for (const Link& link : {spec.machine.h2d, spec.machine.d2h})
    counted.totals.makespan += Nanos{static_cast<std::int64_t>(2e9 * excess / static_cast<double>(link.rate.count()))};
  return counted;
}

}  // namespace tidepool
