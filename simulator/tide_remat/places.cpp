#include "simulator/tide_remat/places.hpp"

#include <algorithm>
#include <utility>

#include "simulator/packing/greedy.hpp"
#include "simulator/packing/minimise.hpp"
#include "simulator/packing/orders.hpp"
#include "simulator/packing/sections.hpp"
#include "simulator/registry.hpp"

namespace tidepool {

std::optional<Bytes> granule_of(const std::string& pool) {
  const Spec spec = parse_spec(pool);
  if (spec.name != "best-fit" && spec.name != "first-fit") return std::nullopt;
  const PoolInfo& info = find_pool(spec.name);
  return Options{info.name, info.options, spec.options}.bytes("alignment");
}

FoundPlaces find_places(const PlaceLog& log, Bytes granule, Bytes capacity, double effort) {
  Instance instance;  // in granules
  for (std::size_t i = 0; i < log.lives.size(); ++i)
    instance.add(Bytes{log.lives[i].size / granule}, static_cast<std::int64_t>(i),
                 static_cast<std::int64_t>(std::min<std::size_t>(log.lives[i].end, log.lives.size())));
  const Bytes limit{capacity / granule};

  std::vector<Bytes> best;
  Bytes height;
  const auto offer = [&](std::vector<Bytes> offsets) {
    const Bytes needed = height_of(instance, offsets);
    if (!best.empty() && needed >= height) return;
    height = needed;
    best = std::move(offsets);
  };
  const Sections sections{instance};
  for (const PackingOrder order : {PackingOrder::kSize, PackingOrder::kSizeLife, PackingOrder::kArea}) {
    offer(place_in_order(instance, sections, in_order(instance, order), Fit::kBest));
    if (height <= limit) break;
    offer(place_in_order(instance, sections, in_order(instance, order), Fit::kFirst));
    if (height <= limit) break;
  }
  if (height > limit && effort > 0 && load_of(instance) <= limit) {
    Layout layout = minimise(instance, {.capacity = limit, .enough = limit}, effort);
    if (layout.offsets.size() == instance.items.size()) offer(std::move(layout.offsets));
  }
  for (Bytes& offset : best) offset = offset * granule.count();
  return {std::move(best), height * granule.count()};
}

}  // namespace tidepool
