#include "policies/planning/search/run_places.hpp"

#include <algorithm>
#include <utility>

#include "simulator/registry.hpp"
#include "simulator/solvers/packing/greedy.hpp"
#include "simulator/solvers/packing/minimise.hpp"
#include "simulator/solvers/packing/sections.hpp"

namespace tidepool {

std::optional<Bytes> granule_of(const Spec& pool) {
  if (pool.name != "best-fit" && pool.name != "first-fit") return std::nullopt;
  const PoolInfo& info = find_pool(pool.name);
  return Options{info.name, info.options, pool.options}.bytes("alignment");
}

namespace {

/// Lives as items, with sizes in granules. Two lives that must have the same place are one item. If there is a cycle,
/// lives that end before it or begin after it have no item.
struct LifeItems {
  Instance instance;
  std::vector<std::uint32_t> item;  ///< by life; kNever: none
};

LifeItems items_of(const PlaceLog& log, Bytes granule) {
  const std::size_t count = log.cycle ? log.cycle->last.lives : log.lives.size();
  LifeItems found;
  found.item.assign(count, PlaceLog::kNever);
  const auto interval = [&](std::size_t life) {
    return Interval{static_cast<std::int64_t>(life),
                    static_cast<std::int64_t>(std::min<std::size_t>(log.lives[life].end, count))};
  };
  std::vector<bool> is_twin(count);
  for (std::size_t i = 0; log.cycle && i < count; ++i)
    if (log.cycle->twin[i] != PlaceLog::kNever) is_twin[log.cycle->twin[i]] = true;
  for (std::size_t i = 0; i < count; ++i) {
    if (is_twin[i] || log.ends_before_cycle(i)) continue;
    const Bytes size{log.lives[i].size / granule};
    const std::uint32_t twin = log.cycle ? log.cycle->twin[i] : PlaceLog::kNever;
    found.item[i] = static_cast<std::uint32_t>(found.instance.items.size());
    if (twin == PlaceLog::kNever) {
      found.instance.add(size, interval(i).lower, interval(i).upper);
      continue;
    }
    found.item[twin] = found.item[i];
    if (interval(twin).upper == interval(i).lower)
      found.instance.add(size, interval(twin).lower, interval(i).upper);
    else
      found.instance.add(size, std::vector<Interval>{interval(twin), interval(i)});
  }
  return found;
}

/// Offsets of items in granules as offsets of lives in bytes.
FoundPlaces in_bytes(const PlaceLog& log, const LifeItems& items, const std::vector<Bytes>& offsets, Bytes granule) {
  FoundPlaces found{std::vector<Bytes>(log.lives.size()), height_of(items.instance, offsets) * granule.count()};
  for (std::size_t i = 0; i < items.item.size(); ++i)
    if (items.item[i] != PlaceLog::kNever) found.offsets[i] = offsets[items.item[i]] * granule.count();
  return found;
}

/// Offsets by one-pass orders. Orders are tried until the height of one is within the limit.
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
  const LifeItems items = items_of(log, granule);
  const Bytes limit{capacity / granule};
  if (effort > 0 && load_of(items.instance) <= limit)
    return in_bytes(log, items, minimise(items.instance, {.capacity = limit, .enough = limit}, effort).offsets,
                    granule);
  return in_bytes(log, items, pass_over(items.instance, limit), granule);
}

FoundPlaces find_like_places(const PlaceLog& log, const PlaceLog& earlier, const std::vector<Bytes>& offsets,
                             Bytes granule) {
  std::vector<std::vector<Bytes>> known;  // by version, in order
  std::size_t life = 0;
  for (const PlaceLog::Answer& each : earlier.answers) {
    if (!each.given) continue;
    known.resize(std::max(known.size(), each.version.index() + 1));
    if (!earlier.ends_before_cycle(life)) known[each.version.index()].push_back(offsets[life]);
    ++life;
  }
  std::vector<std::size_t> asked(known.size());  // by version
  std::vector<Bytes> before;                     // by life
  for (const PlaceLog::Answer& each : log.answers) {
    if (!each.given) continue;
    const std::size_t v = each.version.index();
    const bool is_known = !log.ends_before_cycle(before.size()) && v < known.size() && !known[v].empty();
    before.push_back(is_known ? known[v][std::min(asked[v]++, known[v].size() - 1)] : kNoLimit);
  }
  const LifeItems items = items_of(log, granule);
  std::vector<Bytes> item_before(items.instance.items.size());
  for (std::size_t i = 0; i < items.item.size(); ++i)
    if (items.item[i] != PlaceLog::kNever) item_before[items.item[i]] = before[i];
  std::vector<std::uint32_t> order = in_order(items.instance, PackingOrder::kSize);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return item_before[a] < item_before[b]; });
  return in_bytes(log, items, place_in_order(items.instance, order, Fit::kFirst), granule);
}

}  // namespace tidepool
