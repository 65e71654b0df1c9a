#include "policies/planning/search/improve_placed.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "policies/planning/search/gap_changes.hpp"
#include "policies/planning/search/improve.hpp"

namespace tidepool {
namespace {

/// The ops during which a place lies above the capacity; an op occurs once for each such place.
std::vector<std::size_t> crowded_slots(const PlaceLog& log, const FoundPlaces& places, Bytes capacity,
                                       std::size_t ops) {
  const auto op_of = [&](std::size_t life) {
    return life < log.lives.size() && log.lives[life].before.valid() ? log.lives[life].before.index() : ops - 1;
  };
  std::vector<std::size_t> slots;
  for (std::size_t i = 0; i < log.lives.size(); ++i)
    if (places.offsets[i] + log.lives[i].size > capacity)
      for (std::size_t k = op_of(i), last = op_of(log.lives[i].end); k <= last; ++k) slots.push_back(k);
  return slots;
}

}  // namespace

std::optional<Placer::Placed> improve_placed(Placer& placer, const RunSpec& spec, const Planning& planning,
                                             const std::vector<Nanos>& costs, const PlacedStart& start, Result best) {
  constexpr std::size_t kMostPlaced = 1'000'000, kMostPacked = 30'000;  // lives over all runs: about a second each
  const CopyOut copies = copies_of(start.plan);
  std::optional<Placer::Placed> found;
  Planning limited = planning;
  GapChanges changes{planning, costs, start.seed};
  std::mt19937_64 random{start.seed};
  std::vector<How> current = how_of(selection_of(start.plan), planning.gaps.size());
  Bytes limit = start.limit;
  std::optional<Result> least;  // counted result of `current`, plus the cost of its excess
  std::shared_ptr<PlaceLog> log;
  FoundPlaces places;  // of `current`
  std::size_t placed_lives = 0, packed_lives = 0;
  const auto pack = [&](const PlaceLog& changed) {
    if (!least) return placer.pack(changed, Placer::Packing::kThorough);
    FoundPlaces like = placer.pack_like(changed, *log, places);
    placed_lives += changed.lives.size();
    if (like.height <= spec.capacity || packed_lives >= kMostPacked) return like;
    FoundPlaces anew = placer.pack(changed, Placer::Packing::kQuick);
    packed_lives += changed.lives.size();
    return anew.height < like.height ? anew : like;
  };
  for (std::int64_t i = 0; i < start.tries && (least || i == 0) && placed_lives < kMostPlaced; ++i) {
    std::vector<How> changed = current;
    limited.capacity = limit;
    if (least && random() % 8 == 0) {
      const Bytes by = spec.capacity / 100 * static_cast<std::int64_t>(1 + random() % 2);
      limited.capacity = random() % 2 == 0 ? std::min(limit + by, spec.capacity) : limit - by;
    } else if (least) {
      changed = changes.changed(current);
    }
    std::optional<MixedPlan> mixed = schedule_mixed(limited, selection_of(changed), copies);
    if (!mixed) continue;
    mixed->plan.drops_on_demand = start.plan.drops_on_demand;
    const GapDraft draft = draft_of(planning.gaps, mixed->plan, planning.trace.ops().size(), start.always);
    Placer::Counted counted =
        placer.count(draft, limited.capacity, least ? limit_of(planning.trace, spec, *least, 1) : spec.overhead_limit);
    Result& result = counted.result;
    if (result.outcome != Outcome::kOk || (least && better(*least, result))) continue;

    FoundPlaces changed_places = pack(*counted.log);
    if (changed_places.height <= spec.capacity) {
      Placer::Placed placed = placer.follow(draft, *counted.log, changed_places);
      if (better(placed.result, best)) best = placed.result, found = std::move(placed);
    }
    result = with_excess(result, changed_places.height, spec);
    if (least && better(*least, result)) continue;
    least = result;
    log = std::move(counted.log);
    places = std::move(changed_places);
    current = std::move(changed);
    limit = limited.capacity;
    changes.look_at(crowded_slots(*log, places, spec.capacity, planning.circle.size()));
  }
  return found;
}

}  // namespace tidepool
