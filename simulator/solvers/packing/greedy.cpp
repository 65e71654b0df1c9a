#include "simulator/solvers/packing/greedy.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "simulator/solvers/packing/sections.hpp"

namespace tidepool {

namespace {

using Key = std::pair<Int128, Int128>;  // the greatest comes first

Key key_of(const Instance& instance, const Item& item, PackingOrder order) {
  const std::span<const Interval> lives = instance.lives(item);
  const std::int64_t size = item.size.count(), birth = lives.empty() ? 0 : lives.front().lower;
  std::int64_t life = 0;
  for (const Interval& interval : lives) life += interval.upper - interval.lower;
  switch (order) {
    case PackingOrder::kSize:
      return {size, -birth};
    case PackingOrder::kSizeLife:
      return {size, life};
    case PackingOrder::kArea:
      return {static_cast<Int128>(size) * life, 0};
    case PackingOrder::kLife:
      return {life, size};
    case PackingOrder::kBirth:
      break;
  }
  return {-birth, 0};
}

/// Bytes that live in each section. Positions between two sections are left out: their items also live in a section
/// beside them, and are assigned with it.
std::vector<Bytes> breadths(const Instance& instance, const Sections& sections) {
  std::vector<Bytes> breadth(std::size_t{sections.count()} + 1);
  for (std::uint32_t i = 0; i < instance.items.size(); ++i)
    for (const SectionRange range : sections.of(i)) {
      breadth[range.first] += instance.items[i].size;
      breadth[range.last] -= instance.items[i].size;
    }
  std::partial_sum(breadth.begin(), breadth.end(), breadth.begin());
  breadth.pop_back();
  return breadth;
}

/// Minimum over ranges of ranks, in O(log n) each after O(n log n).
class RangeMinimum {
 public:
  explicit RangeMinimum(std::vector<std::uint32_t> values) {
    levels_.push_back(std::move(values));
    for (std::size_t step = 1; 2 * step <= levels_[0].size(); step *= 2) {
      const std::vector<std::uint32_t>& below = levels_.back();
      std::vector<std::uint32_t> level(below.size() - step);
      for (std::size_t i = 0; i < level.size(); ++i) level[i] = std::min(below[i], below[i + step]);
      levels_.push_back(std::move(level));
    }
  }

  std::uint32_t over(SectionRange range) const {
    std::size_t level = 0;
    while ((std::size_t{2} << level) <= range.last - range.first) ++level;
    return std::min(levels_[level][range.first], levels_[level][range.last - (std::size_t{1} << level)]);
  }

 private:
  std::vector<std::vector<std::uint32_t>> levels_;
};

/// The items that are not fixed, in the order in which they are assigned.
std::vector<std::uint32_t> assignment_order(const Instance& instance, const Sections& sections) {
  const std::vector<Bytes> breadth = breadths(instance, sections);
  std::vector<std::uint32_t> widest_first(breadth.size()), rank(breadth.size());
  std::iota(widest_first.begin(), widest_first.end(), 0U);
  std::stable_sort(widest_first.begin(), widest_first.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return breadth[a] > breadth[b]; });
  for (std::uint32_t i = 0; i < rank.size(); ++i) rank[widest_first[i]] = i;
  const RangeMinimum ranks{std::move(rank)};

  std::vector<std::tuple<std::uint32_t, Bytes, std::uint32_t>> keys;
  for (std::uint32_t i = 0; i < instance.items.size(); ++i) {
    if (instance.items[i].fixed || sections.of(i).empty()) continue;
    std::uint32_t first = sections.count();
    for (const SectionRange range : sections.of(i)) first = std::min(first, ranks.over(range));
    keys.emplace_back(first, -instance.items[i].size, i);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::uint32_t> order;
  for (const auto& key : keys) order.push_back(std::get<2>(key));
  return order;
}

/// A shared object: its size, and the sections in which it is in use.
class SharedObject {
 public:
  Bytes size;
  std::vector<std::uint32_t> items;

  bool is_free(std::span<const SectionRange> ranges) const {
    return std::all_of(ranges.begin(), ranges.end(), [&](SectionRange range) {
      const auto above = used_.lower_bound(range.first);
      if (above != used_.end() && above->first < range.last) return false;
      return above == used_.begin() || std::prev(above)->second <= range.first;
    });
  }
  void use(std::span<const SectionRange> ranges) {
    for (const SectionRange range : ranges) used_.emplace(range.first, range.last);
  }

 private:
  std::map<std::uint32_t, std::uint32_t> used_;  // disjoint sections [first, second)
};

class SharedObjects {
 public:
  void assign(std::uint32_t item, Bytes size, std::span<const SectionRange> ranges) {
    const std::size_t chosen = find(size, ranges).value_or(objects_.size());
    if (chosen == objects_.size()) objects_.emplace_back();
    SharedObject& object = objects_[chosen];
    by_size_.erase({object.size, chosen});
    object.size = std::max(object.size, size);
    by_size_.emplace(object.size, chosen);
    object.items.push_back(item);
    object.use(ranges);
  }

  const std::vector<SharedObject>& all() const { return objects_; }

 private:
  /// The smallest free object that is large enough, else the largest free one; of equal ones, the first made.
  std::optional<std::size_t> find(Bytes size, std::span<const SectionRange> ranges) const {
    const auto enough = by_size_.lower_bound({size, 0});
    for (auto at = enough; at != by_size_.end(); ++at)
      if (objects_[at->second].is_free(ranges)) return at->second;
    std::optional<std::size_t> found;
    for (auto at = enough; at != by_size_.begin();) {
      --at;
      if (found && at->first < objects_[*found].size) break;
      if (objects_[at->second].is_free(ranges)) found = at->second;
    }
    return found;
  }

  std::vector<SharedObject> objects_;
  std::set<std::pair<Bytes, std::size_t>> by_size_;
};

}  // namespace

std::vector<Bytes> place_in_order(const Instance& instance, std::span<const std::uint32_t> order, Fit fit) {
  return place_in_order(instance, Sections{instance}, order, fit);
}

std::vector<Bytes> place_in_order(const Instance& instance, const Sections& sections,
                                  std::span<const std::uint32_t> order, Fit fit) {
  Occupancy occupancy{sections.count()};
  std::vector<Bytes> offsets(instance.items.size());
  for (std::uint32_t i = 0; i < instance.items.size(); ++i) {
    const Item& item = instance.items[i];
    if (!item.fixed) continue;
    offsets[i] = *item.fixed;
    occupancy.take(sections.of(i), offsets[i].count(), item.size.count());
  }
  for (const std::uint32_t i : order) {
    const Item& item = instance.items[i];
    if (item.fixed || item.size == Bytes{}) continue;
    offsets[i] = Bytes{occupancy.find(sections.of(i), item.size.count(), item.alignment.count(), fit)};
    occupancy.take(sections.of(i), offsets[i].count(), item.size.count());
  }
  return offsets;
}

Bytes height_of(const Instance& instance, const std::vector<Bytes>& offsets) {
  Bytes height;
  for (std::size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + instance.items[i].size);
  return height;
}

std::string_view to_text(PackingOrder order) {
  constexpr std::array<std::string_view, kPackingOrders.size()> kNames{"size", "size-life", "area", "life", "birth"};
  return kNames[static_cast<std::size_t>(order)];
}

std::vector<std::uint32_t> in_order(const Instance& instance, PackingOrder order) {
  std::vector<Key> keys;
  keys.reserve(instance.items.size());
  for (const Item& item : instance.items) keys.push_back(key_of(instance, item, order));
  std::vector<std::uint32_t> sorted(instance.items.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] > keys[b]; });
  return sorted;
}

std::vector<Bytes> place_by_breadth(const Instance& instance) {
  const Sections sections{instance};
  SharedObjects objects;
  for (const std::uint32_t i : assignment_order(instance, sections))
    objects.assign(i, instance.items[i].size, sections.of(i));

  std::vector<Bytes> offsets(instance.items.size());
  Bytes top;
  for (std::size_t i = 0; i < offsets.size(); ++i)
    if (instance.items[i].fixed) {
      offsets[i] = *instance.items[i].fixed;
      top = std::max(top, offsets[i] + instance.items[i].size);
    }
  for (const SharedObject& object : objects.all()) {
    Bytes end = top;
    for (const std::uint32_t i : object.items) {
      offsets[i] = round_up(top, instance.items[i].alignment);
      end = std::max(end, offsets[i] + instance.items[i].size);
    }
    top = end;
  }
  return offsets;
}

}  // namespace tidepool
