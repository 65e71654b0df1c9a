#include "policies/planning/search/run_places.hpp"

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

namespace {

Instance instance_of(const PlaceLog& log, Bytes granule) {
  Instance instance;  // in granules
  for (std::size_t i = 0; i < log.lives.size(); ++i)
    instance.add(Bytes{log.lives[i].size / granule}, static_cast<std::int64_t>(i),
                 static_cast<std::int64_t>(std::min<std::size_t>(log.lives[i].end, log.lives.size())));
  return instance;
}

FoundPlaces in_bytes(const Instance& instance, std::vector<Bytes> offsets, Bytes granule) {
  const Bytes height = height_of(instance, offsets) * granule.count();
  for (Bytes& offset : offsets) offset = offset * granule.count();
  return {std::move(offsets), height};
}

/// By one-pass orders, until one is not above the limit.
std::vector<Bytes> pass_over(const Instance& instance, Bytes limit) {
  std::vector<Bytes> best;
  Bytes height;
  const Sections sections{instance};
  for (const PackingOrder order : {PackingOrder::kSize, PackingOrder::kSizeLife, PackingOrder::kArea})
    for (const Fit fit : {Fit::kBest, Fit::kFirst}) {
      std::vector<Bytes> offsets = place_in_order(instance, sections, in_order(instance, order), fit);
      const Bytes needed = height_of(instance, offsets);
      if (best.empty() || needed < height) height = needed, best = std::move(offsets);
      if (height <= limit) return best;
    }
  return best;
}

}  // namespace

FoundPlaces find_places(const PlaceLog& log, Bytes granule, Bytes capacity, double effort) {
  const Instance instance = instance_of(log, granule);
  const Bytes limit{capacity / granule};
  if (effort > 0 && load_of(instance) <= limit)
    return in_bytes(instance, minimise(instance, {.capacity = limit, .enough = limit}, effort).offsets, granule);
  return in_bytes(instance, pass_over(instance, limit), granule);
}

FoundPlaces find_like_places(const PlaceLog& log, const PlaceLog& earlier, const std::vector<Bytes>& offsets,
                             Bytes granule) {
  std::vector<std::vector<Bytes>> known;  // by version, in order
  std::size_t life = 0;
  for (const PlaceLog::Answer& each : earlier.answers) {
    if (!each.given) continue;
    known.resize(std::max(known.size(), each.version.index() + 1));
    known[each.version.index()].push_back(offsets[life++]);
  }
  std::vector<std::size_t> asked(known.size());  // by version
  std::vector<Bytes> before;                     // by life
  for (const PlaceLog::Answer& each : log.answers) {
    if (!each.given) continue;
    const std::size_t v = each.version.index();
    before.push_back(v < known.size() && !known[v].empty() ? known[v][std::min(asked[v]++, known[v].size() - 1)]
                                                           : kNoLimit);
  }
  const Instance instance = instance_of(log, granule);
  std::vector<std::uint32_t> order = in_order(instance, PackingOrder::kSize);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return before[a] < before[b]; });
  return in_bytes(instance, place_in_order(instance, order, Fit::kFirst), granule);
}

}  // namespace tidepool
